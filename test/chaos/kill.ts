import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { costOf } from '../../src/domain/pricing.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createBooks } from '../../src/storage/books.ts';
import { createSqliteEngine } from '../../src/storage/sqlite/engine.ts';
import { randomNumbers } from '../support/random-numbers.ts';

/**
 * Loads a gateway and kills it with SIGKILL at random moments, again and again, for each durability mode. After every
 * start it looks the books over: every answer that a client saw whole has exactly one settled row, charged by what the
 * upstream itself says that it served. `npm run chaos [kills]`; `FC_SEED` repeats the moments.
 */

const kills = Number(process.argv[2] ?? 100);
const atATime = 8;
/** The longest time from a start to its kill, in milliseconds. */
const maxLifeMs = 250;
const maxRecoveryMs = 1_000;
const price = { input: 3_000_000_000, cachedInput: 3_000_000_000, output: 7_000_000_000 };

const { random, seed } = randomNumbers();
let lastNumber = 0;
const faults: string[] = [];
const demand = (condition: boolean, fault: string): void => void (condition || faults.push(fault));

/** What the upstream served, by the number in the question. */
const served = new Map<number, { readonly input: number; readonly output: number }>();
const upstream = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => (body += chunk.toString()));
  request.on('end', () => {
    const number = Number(/"content":"(\d+)"/.exec(body)?.[1]);
    const usage = { input: 5 + (number % 7), output: 3 + (number % 11) };
    served.set(number, usage);
    const counts = { prompt_tokens: usage.input, completion_tokens: usage.output };
    const frames = [
      { choices: [{ index: 0, delta: { content: 'a ' } }] },
      { choices: [{ index: 0, delta: { content: 'b' }, finish_reason: 'stop' }] },
      { choices: [], usage: { ...counts, total_tokens: usage.input + usage.output } },
    ];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`);
  });
});
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;

for (const durability of ['normal', 'full'] as const) await runMode(durability);
upstream.close();
if (faults.length > 0) {
  process.stderr.write(`${faults.slice(0, 20).join('\n')}\n${faults.length} faults (seed ${seed})\n`);
  process.exit(1);
}

async function runMode(durability: 'normal' | 'full'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-chaos-'));
  const file = join(folder, 'textgate.db');
  /** Answers that a client saw whole: their request ids, and the numbers of their questions. */
  const acknowledged = new Map<string, number>();
  let worstStartMs = 0;
  let lost = 0;
  for (let kill = 0; kill < kills; kill++) {
    const child = fork(join(import.meta.dirname, 'gateway-child.ts'), [upstreamUrl, file, durability]);
    const [{ url, key, startMs }] = (await once(child, 'message')) as [
      { url: string; key: string; startMs: number },
    ];
    worstStartMs = Math.max(worstStartMs, startMs);
    await loadUntilKilled(child, url, key, acknowledged);
    lost += await lookOver(file, acknowledged);
  }
  demand(worstStartMs <= maxRecoveryMs, `${durability}: recovery took ${worstStartMs} ms`);
  process.stdout.write(
    `${durability}: ${kills} kills, ${acknowledged.size} answers acknowledged, ${lost} records closed as lost, ` +
      `slowest start ${worstStartMs.toFixed(0)} ms, faults ${faults.length} (seed ${seed})\n`,
  );
  rmSync(folder, { recursive: true });
}

async function loadUntilKilled(
  child: ChildProcess,
  url: string,
  key: string,
  acknowledged: Map<string, number>,
): Promise<void> {
  const killed = once(child, 'close');
  setTimeout(() => child.kill('SIGKILL'), random() * maxLifeMs);
  const worker = async (): Promise<void> => {
    while (child.exitCode === null && child.signalCode === null)
      await ask(url, key, acknowledged).catch(() => setImmediate());
  };
  await Promise.all([killed, ...Array.from({ length: atATime }, worker)]);
}

async function ask(url: string, key: string, acknowledged: Map<string, number>): Promise<void> {
  const number = ++lastNumber;
  const stream = random() < 0.5;
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', stream, messages: [{ role: 'user', content: String(number) }] }),
  });
  const text = await response.text();
  const isWhole = stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}') && response.status === 200;
  if (isWhole) acknowledged.set(response.headers.get('x-request-id') ?? '', number);
}

/** Opens the file as the next process would; returns how many records that closes as lost. */
async function lookOver(file: string, acknowledged: ReadonlyMap<string, number>): Promise<number> {
  const engine = createSqliteEngine({ path: file, durability: 'normal' });
  await engine.ready;
  const verification = await verifyLedger(createBooks(engine));
  for (const fault of verification.faults) faults.push(fault);
  await engine.close();
  const database = new DatabaseSync(file, { readOnly: true });
  const find = database.prepare('SELECT outcome, charge, usage_source FROM records WHERE request_id = ?');
  const post = database.prepare(
    'SELECT count(*) AS count, sum(delta) AS delta FROM ledger WHERE request_id = ?',
  );
  for (const [requestId, number] of acknowledged) {
    const usage = served.get(number);
    const cost = costOf(
      { inputTokens: usage?.input ?? 0, cachedInputTokens: 0, outputTokens: usage?.output ?? 0 },
      price,
    );
    const record = find.get(requestId);
    const posted = post.get(requestId);
    demand(
      record?.['outcome'] === 'completed',
      `${requestId}: acknowledged, but ${String(record?.['outcome'])}`,
    );
    demand(record?.['charge'] === cost, `${requestId}: charged ${String(record?.['charge'])}, not ${cost}`);
    demand(
      posted?.['count'] === 1 && posted['delta'] === -cost,
      `${requestId}: posted ${JSON.stringify(posted)}`,
    );
  }
  const open = database.prepare('SELECT count(*) AS count FROM records WHERE outcome IS NULL').get();
  database.close();
  return Number(open?.['count'] ?? 0);
}
