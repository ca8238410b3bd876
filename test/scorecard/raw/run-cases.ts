import { connect } from 'node:net';
import { forEachOf } from '../for-each-of.ts';
import { framingTables } from './framing-tables.ts';
import { headTables } from './head-tables.ts';
import { headerTables } from './header-tables.ts';
import { marker, subjectsOf } from './raw-case.ts';
import type { RawCase, RawTable } from './raw-case.ts';

/** How many connections are open at a time. */
const atATime = 48;

/** How long a connection may stay open, in milliseconds: much longer than any deadline of the gateway under test. */
const maxOpenMs = 20_000;

/** The deadlines of a gateway for these cases: short, because each request that has no end takes one of them. */
export const rawTimeouts = { head: '2s', request: '2s', idle: '500ms' } as const;

/** The gateway under test. */
export interface Listeners {
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
  readonly adminToken: string;
}

/** A case with the address of its listener. */
interface AimedCase extends RawCase {
  readonly url: string;
}

/** All tables for both listeners. */
export function rawTables({ url, adminUrl, key, adminToken }: Listeners): readonly RawTable<AimedCase>[] {
  const subjects = subjectsOf(key, adminToken);
  const tables = [false, true].flatMap((isAdmin) => {
    const aimed = subjects.filter((subject) => subject.isAdmin === isAdmin);
    return [...headTables(aimed), ...framingTables(aimed), ...headerTables(aimed)].map(
      ({ title, cases }) => ({
        title,
        cases: cases.map((one) => ({ ...one, url: isAdmin ? adminUrl : url })),
      }),
    );
  });
  return [...Map.groupBy(tables, ({ title }) => title)].map(([title, parts]) => ({
    title,
    cases: parts.flatMap(({ cases }) => cases),
  }));
}

/** What the upstream got of a request: enough to find the id of its case. */
interface Seen {
  readonly path: string;
  readonly body: string;
}

/** Sends every case on a connection of its own; resolves with a sentence for each that broke what it wants. */
export async function runCases(
  cases: readonly AimedCase[],
  seen: readonly Seen[],
): Promise<readonly string[]> {
  const faults: string[] = [];
  const before = seen.length;
  await forEachOf(cases, atATime, async (one) => {
    const fault = faultOf(one, statusesOf(await exchangeRaw(one.url, one.bytes)));
    if (fault !== null) faults.push(`${one.name}: ${fault}`);
  });
  const got = seen.slice(before).map(({ path, body }) => `${path} ${body}`);
  for (const { id, name, upstream } of cases) {
    const count = got.filter((text) => text.includes(id)).length;
    if (count > upstream) faults.push(`${name}: the upstream got ${count} requests instead of ${upstream}`);
  }
  for (const text of got) if (text.includes(marker)) faults.push(`a hidden request was run: ${text}`);
  return faults;
}

function faultOf({ wanted, answers }: RawCase, statuses: readonly number[]): string | null {
  const [first = 0] = statuses;
  const isWanted = typeof wanted === 'number' ? first === wanted : classes[wanted](first);
  if (!isWanted) return `${statuses.join(', ') || 'no answer'} instead of ${wanted}`;
  if (statuses.some((status) => status >= 500)) return `a server error: ${statuses.join(', ')}`;
  return statuses.length > answers ? `${statuses.length} answers instead of ${answers}` : null;
}

const classes = {
  success: (status: number) => status >= 200 && status < 300,
  'success or closed': (status: number) => status < 300,
  'client error': (status: number) => status >= 400 && status < 500,
  'no server error': (status: number) => status >= 200 && status < 500,
};

/** The statuses of all answers on a connection, without interim ones. */
export function statusesOf(text: string): readonly number[] {
  return [...text.matchAll(/HTTP\/1\.1 ([2-9]\d\d) /g)].map(([, status]) => Number(status));
}

/** Sends bytes, and resolves with everything that came back until the connection was closed. */
export function exchangeRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname });
    const timer = setTimeout(() => socket.destroy(), maxOpenMs);
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(text);
    });
    socket.write(bytes, 'latin1');
  });
}
