import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { checkLedger } from '../../chaos/check-ledger.ts';
import { askNumber } from '../../chaos/numbered-client.ts';
import type { Acknowledged } from '../../chaos/numbered-client.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { databaseIn, serveIn } from '../../chaos/served-process.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { requestsInFlight } from '../gateway-state.ts';
import { adminKinds, publicKinds, question } from '../request-kinds.ts';
import type { Section } from '../section.ts';

/** How often each kind of request is reset in each manner, at scale 1. */
const times = 40;
/** Numbers of questions from here on belong to the storm; as long as the one that stands in each kind of request. */
const firstQuestion = Number(question);
/** Connections at a time: a storm that saturates the gateway is over before any request is read. */
const atATime = 10;
/** How long the upstream takes to answer, and the most that a client waits for the first bytes, in milliseconds. */
const answerMs = 20;
const patienceMs = 5_000;
/** How long the gateway may take until nothing is in flight any more, in milliseconds. */
const settleMs = 10_000;

/** What a client sends, and when it resets: so many milliseconds later, or with the first bytes of the answer. */
interface Reset {
  readonly sent: string;
  readonly after: number | 'first bytes';
}

const manners: Readonly<Record<string, (bytes: string, random: () => number) => Reset>> = {
  'at once': (bytes) => ({ sent: bytes, after: 0 }),
  'after 1 to 8 ms': (bytes, random) => ({ sent: bytes, after: 1 + random() * 7 }),
  'after 8 to 60 ms': (bytes, random) => ({ sent: bytes, after: 8 + random() * 52 }),
  'in the answer': (bytes) => ({ sent: bytes, after: 'first bytes' }),
  'half way': (bytes, random) => ({ sent: bytes.slice(0, Math.ceil(random() * bytes.length)), after: 0 }),
  pipelined: (bytes, random) => ({ sent: bytes.repeat(3), after: random() * 60 }),
};

export const section: Section = {
  name: 'resets',
  title: 'Storms of resets',
  about:
    'Connections with every kind of request, of both listeners, are reset at once, some milliseconds later, within the ' +
    'answer, half way through the request and with requests in a row. The process must live on, other clients must get whole answers, nothing may stay in flight, ' +
    'and the ledger must add up.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const folder = mkdtempSync(join(tmpdir(), 'textgate-resets-'));
    const upstream = await startNumberedUpstream({ answerMs: () => answerMs });
    const served = await serveIn(folder, upstream.url);
    const key = await served.createKey('storm', '1000.00');
    const faults: string[] = [];

    const storm = [
      ...publicKinds(key).map((kind) => [served.url, kind] as const),
      ...adminKinds(served.adminToken).map((kind) => [served.adminUrl, kind] as const),
    ];
    const resets = storm.flatMap(([url, kind]) =>
      Object.values(manners).flatMap((manner) =>
        Array.from({ length: Math.ceil(times * scale) }, () => ({ url, kind, manner, order: random() })),
      ),
    );
    resets.sort((a, b) => a.order - b.order);
    log(`${storm.length} kinds of requests, ${resets.length} connections`);

    const acknowledged: Acknowledged = new Map();
    let [asked, next] = [0, 0];
    const over = new AbortController();
    const others = (async () => {
      for (; !over.signal.aborted; asked++) {
        const status = await askNumber(served.url, key, asked % 2 === 0, acknowledged).catch(String);
        if (status !== 200) faults.push(`another client's request ${asked} ended with ${status}`);
        await wait(5);
      }
    })();
    const work = async (): Promise<void> => {
      for (let reset = resets[next++]; reset !== undefined; reset = resets[next++]) {
        const { sent, after } = reset.manner(reset.kind.bytes, random);
        await resetOne(reset.url, { sent: sent.replaceAll(question, String(firstQuestion + next)), after });
      }
    };
    await Promise.all(Array.from({ length: atATime }, work));
    over.abort();
    await others;

    const startMs = performance.now();
    let left = await requestsInFlight(served);
    for (; left > 0 && performance.now() - startMs < settleMs; left = await requestsInFlight(served))
      await wait(20);
    if (left > 0) faults.push(`${left} requests are in flight ${settleMs} ms after the last reset`);
    if (acknowledged.size !== asked)
      faults.push(`${asked - acknowledged.size} answers of others were not whole`);
    const ending = await served.end();
    if (ending !== 0) faults.push(`the process ended with ${ending}`);
    const books = await checkLedger(databaseIn(folder), acknowledged, upstream.served);
    if (books.open > 0) faults.push(`${books.open} records are open after the end`);
    upstream.close();
    rmSync(folder, { recursive: true });
    return {
      cases: resets.length,
      facts: [
        ['kinds of requests', storm.length],
        ['requests that reached the upstream', upstream.served.size - asked],
        ['whole answers of another client meanwhile', acknowledged.size],
        ['in flight afterwards', left],
        ['exit code', ending],
        ['faults of the ledger', books.faults.length],
      ],
      faults: [...faults, ...books.faults],
    };
  },
};

async function resetOne(url: string, { sent, after }: Reset): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname }).on('error', () => {});
  const closed = once(socket, 'close');
  const reset = (): void => void socket.resetAndDestroy();
  socket.on('data', after === 'first bytes' ? reset : () => {});
  socket.once('connect', () =>
    socket.write(sent, () => {
      if (after === 0) reset();
      else setTimeout(reset, after === 'first bytes' ? patienceMs : after).unref();
    }),
  );
  await closed;
}
