import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { askNumber } from '../../chaos/numbered-client.ts';
import type { Acknowledged } from '../../chaos/numbered-client.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { adminKinds, publicKinds, question } from '../request-kinds.ts';
import { forEachOf } from '../for-each-of.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

/** How often each kind of request is reset in each manner, at scale 1. */
const times = 40;
/** Numbers of questions from here on belong to the storm; as long as the one that stands in each kind of request. */
const firstQuestion = Number(question);
/** Connections at a time: a storm that saturates the gateway is over before any request is read. */
const atATime = 10;
/** How long the upstream takes to answer, and the most that a client waits for the first bytes, in milliseconds. */
const answerMs = 20;
const patienceMs = 5_000;

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
    const upstream = await startNumberedUpstream({ answerMs: () => answerMs });
    const subject = await startSubject({ name: 'resets', upstreamUrl: upstream.url });
    const { served, key } = subject;
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
    let asked = 0;
    const over = new AbortController();
    const others = (async () => {
      for (; !over.signal.aborted; asked++) {
        const status = await askNumber(served.url, key, asked % 2 === 0, acknowledged).catch(String);
        if (status !== 200) faults.push(`another client's request ${asked} ended with ${status}`);
        await wait(5);
      }
    })();
    await forEachOf(resets, atATime, async ({ url, kind, manner }, index) => {
      const { sent, after } = manner(kind.bytes, random);
      await resetOne(url, { sent: sent.replaceAll(question, String(firstQuestion + index)), after });
    });
    over.abort();
    await others;

    if (acknowledged.size !== asked)
      faults.push(`${asked - acknowledged.size} answers of others were not whole`);
    faults.push(...(await subject.finish(acknowledged, upstream.served)));
    upstream.close();
    return {
      cases: resets.length,
      facts: [
        ['kinds of requests', storm.length],
        ['requests that reached the upstream', upstream.served.size - asked],
        ['whole answers of another client meanwhile', acknowledged.size],
      ],
      faults,
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
