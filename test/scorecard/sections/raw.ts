import { passedOn, startNotingUpstream } from '../raw/noting-upstream.ts';
import { rawTables, rawTimeouts, runCases } from '../raw/run-cases.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

export const section: Section = {
  name: 'raw',
  title: 'Raw requests',
  about:
    'Requests as bytes, made from tables of hosts, targets, versions, methods, headers, lengths and chunks, for each path of ' +
    'both listeners. Each must get the answer that its table says, none a server error, and no request that is hidden ' +
    'behind an ambiguous one may reach the upstream.',
  async run({ log }) {
    const upstream = await startNotingUpstream();
    const subject = await startSubject({
      name: 'raw',
      upstreamUrl: upstream.url,
      server: { timeouts: rawTimeouts },
      more: passedOn,
      isQuiet: true,
    });
    const { served, key } = subject;
    const { seen } = upstream;
    const { url, adminUrl, adminToken } = served;
    const tables = rawTables({ url, adminUrl, key, adminToken });
    const faults: string[] = [];
    for (const { title, cases } of tables) {
      const found = await runCases(cases, seen);
      log(`${cases.length} cases, ${found.length} faults: ${title}`);
      faults.push(...found);
    }
    const hidden = seen.filter(({ path, body }) => /smuggled/.test(path + body)).length;
    faults.push(...(await subject.finish()));
    upstream.close();
    return {
      cases: tables.reduce((sum, { cases }) => sum + cases.length, 0),
      facts: [
        ['tables', tables.length],
        ['requests that reached the upstream', seen.length],
        ['hidden requests that reached it', hidden],
      ],
      faults,
    };
  },
};
