import { Agent, request } from 'node:http';
import { secretOf } from '../support/filled-database.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { sendToParent } from './send-to-parent.ts';

/** Holders of keys who read lists one after the other, without a pause, until the process ends or gets another order. */
export interface HoldersOrder {
  readonly url: string;
  /** The first key of theirs, by its number, and how many have one each. Without any, those of the last order stop. */
  readonly firstKey: number;
  readonly holders: number;
  readonly seed: number;
}

/** What was read since the order: answers by their status. */
export type HoldersResult = Readonly<Record<string, number>>;

/** The lists of a holder: whole pages, a year by days, and a statement. */
const paths = [
  '/v1/key/requests?limit=200',
  '/v1/key/usage?by=hour,model,outcome',
  '/v1/key/statement',
  '/v1/key',
];

const agent = new Agent({ keepAlive: true, maxSockets: 1_000 });

/** Reads a list to its end; resolves with the status, or with what broke. */
function read(url: string, secret: string): Promise<string> {
  return new Promise((resolve) => {
    request(url, { agent, headers: { authorization: `Bearer ${secret}` } }, (response) => {
      response.resume().on('end', () => resolve(String(response.statusCode)));
    })
      .on('error', ({ message }) => resolve(message))
      .end();
  });
}

let current: { readonly counts: Record<string, number>; isOver: boolean } | null = null;

async function readOn(
  one: NonNullable<typeof current>,
  url: string,
  key: number,
  seed: number,
): Promise<void> {
  const random = seededNumbers(seed + key);
  while (!one.isOver) {
    const status = await read(`${url}${paths[Math.floor(random() * paths.length)]}`, secretOf(key));
    one.counts[status] = (one.counts[status] ?? 0) + 1;
  }
}

process.on('message', ({ url, firstKey, holders, seed }: HoldersOrder) => {
  if (current !== null) {
    current.isOver = true;
    sendToParent(current.counts satisfies HoldersResult);
  }
  const next = { counts: {}, isOver: false };
  current = holders === 0 ? null : next;
  for (let at = 0; at < holders; at++) void readOn(next, url, firstKey + at, seed);
});
process.once('disconnect', () => process.exit());
