import { parseBody } from '../../../src/protocol/parse-body.ts';
import { wideBodies } from '../raw/wide-bodies.ts';
import type { Section } from '../section.ts';

/** How often each body is parsed; the least time counts, because other processes may run meanwhile. */
const times = 5;
/** The most CPU time that the parser may hold the event loop, in milliseconds. */
const maxMs = 100;

export const section: Section = {
  name: 'wide',
  title: 'Wide bodies',
  about:
    'Bodies of a mebibyte with as many values as they can hold, valid and broken, are parsed or refused. None may take the ' +
    'event loop more than 100 ms of CPU time.',
  run({ log }) {
    const faults: string[] = [];
    const costs = wideBodies().map(({ name, path, body }) => {
      const bytes = Buffer.from(body);
      let leastMs = Infinity;
      for (let left = times; left > 0; left--) {
        const before = process.cpuUsage();
        parseBody(bytes);
        const { user, system } = process.cpuUsage(before);
        leastMs = Math.min(leastMs, (user + system) / 1_000);
      }
      if (leastMs > maxMs) faults.push(`${path}, ${name}: ${leastMs.toFixed(0)} ms of CPU`);
      return { name, leastMs };
    });
    const [worst] = costs.toSorted((a, b) => b.leastMs - a.leastMs);
    const shown = `${worst?.leastMs.toFixed(1)} ms: ${worst?.name}`;
    log(`the most costly body: ${shown}`);
    return Promise.resolve({
      cases: costs.length,
      facts: [['the most CPU time of one body', shown]],
      faults,
    });
  },
};
