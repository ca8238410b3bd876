import { seededNumbers } from '../../support/random-numbers.ts';
import { forEachOf } from '../for-each-of.ts';
import { passedOn, startNotingUpstream } from '../raw/noting-upstream.ts';
import { exchangeRaw, rawTimeouts, statusesOf } from '../raw/run-cases.ts';
import { mutateBytes } from '../raw/mutate-bytes.ts';
import { adminKinds, publicKinds } from '../request-kinds.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

/** How many requests are changed at scale 1, and how many are sent at a time. */
const mutations = 10_000;
const atATime = 48;

export const section: Section = {
  name: 'mutated',
  title: 'Mutated requests',
  about:
    'Requests of every kind, of both listeners, with a few bytes changed by chance. None may get a server error, end the ' +
    'process, or leave a fault in the log, and the ledger must add up.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const upstream = await startNotingUpstream();
    const subject = await startSubject({
      name: 'mutated',
      upstreamUrl: upstream.url,
      server: { timeouts: rawTimeouts },
      more: passedOn,
      isQuiet: true,
    });
    const { served, key } = subject;
    const kinds = [
      ...publicKinds(key).map((kind) => [served.url, kind] as const),
      ...adminKinds(served.adminToken).map((kind) => [served.adminUrl, kind] as const),
    ];
    const requests = Array.from({ length: Math.ceil(mutations * scale) }, () => {
      const [url, kind] = kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number];
      return { url, kind, bytes: mutateBytes(kind.bytes, random) };
    });
    const faults: string[] = [];
    const classes = new Map<string, number>();
    await forEachOf(requests, atATime, async ({ url, kind, bytes }) => {
      const statuses = statusesOf(await exchangeRaw(url, bytes));
      const [first = 0] = statuses;
      const name = first === 0 ? 'closed without an answer' : `answers ${Math.floor(first / 100)}xx`;
      classes.set(name, (classes.get(name) ?? 0) + 1);
      if (statuses.some((status) => status >= 500))
        faults.push(`${kind.name}: ${statuses.join(', ')} for ${JSON.stringify(bytes.slice(0, 400))}`);
    });
    log(`${requests.length} requests of ${kinds.length} kinds are answered`);
    faults.push(...(await subject.finish()));
    upstream.close();
    return {
      cases: requests.length,
      facts: [
        ['kinds of requests', kinds.length],
        ...[...classes].toSorted(([a], [b]) => (a < b ? -1 : 1)),
        ['requests that reached the upstream', upstream.seen.length],
      ],
      faults,
    };
  },
};
