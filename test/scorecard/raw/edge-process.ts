import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkLedger } from '../../chaos/check-ledger.ts';
import { databaseIn, serveConfig, servedModel } from '../../chaos/served-process.ts';
import type { ServedProcess } from '../../chaos/served-process.ts';

/** A gateway process in front of an upstream that keeps what it gets. */
export interface EdgeProcess {
  readonly served: ServedProcess;
  readonly key: string;
  /** What the upstream got, in order. */
  readonly seen: readonly { readonly path: string; readonly body: string }[];
  /** Ends both; resolves with what went wrong: the exit code, faults in the log, open records, the ledger. */
  readonly finish: () => Promise<readonly string[]>;
}

const answer = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

/** Starts both; `server` is that section of the config. */
export async function startEdgeProcess(name: string, server: object = {}): Promise<EdgeProcess> {
  const seen: { path: string; body: string }[] = [];
  const upstream = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString('latin1')));
    request.on('end', () => {
      seen.push({ path: request.url ?? '', body });
      response.setHeader('content-type', 'application/json').end(answer);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  const folder = mkdtempSync(join(tmpdir(), `textgate-${name}-`));
  const logFile = join(folder, 'log');
  const stdout = openSync(logFile, 'w');
  const served = await serveConfig({
    folder,
    stdout,
    config: {
      server: { port: 0, drain: '3s', ...server },
      limits: { concurrency: 1_000, requestsPerMinute: 100_000_000 },
      ...servedModel(`http://127.0.0.1:${port}/v1`),
      passthrough: [{ path: '/tokenize', upstream: 'numbered', free: true }],
    },
  });
  closeSync(stdout);
  return {
    served,
    key: await served.createKey(name, '100000.00'),
    seen,
    async finish() {
      const ending = await served.end();
      const books = await checkLedger(databaseIn(folder), new Map(), new Map());
      const log = readFileSync(logFile, 'utf8');
      const faults = log.split('\n').filter((line) => /"level":"?(?:50|60|error|fatal)"?/.test(line));
      upstream.closeAllConnections();
      upstream.close();
      rmSync(folder, { recursive: true });
      return [
        ...(ending === 0 ? [] : [`the process ended with ${ending}`]),
        ...faults.map((line) => `the log has a fault: ${line.slice(0, 300)}`),
        ...(books.open === 0 ? [] : [`${books.open} records are open after the end`]),
        ...books.faults,
      ];
    },
  };
}
