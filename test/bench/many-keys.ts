import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { hashKey } from '../../src/storage/key-directory.ts';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

/**
 * Whether size matters: an authenticated request with ten keys and with 100,000 keys and 1,000,000 rows of the ledger,
 * with the key remembered and looked up afresh, and a page of records. `npm run bench`
 */

const requests = 2_000;
const warmUp = 1_000;

const upstream = await startUpstream();
upstream.play(sayTexts(['x']));
for (const [keys, rows] of [
  [10, 100],
  [100_000, 1_000_000],
] as const) {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
  await measure(join(folder, 'textgate.db'), keys, rows);
  rmSync(folder, { recursive: true });
}
await upstream.close();

async function measure(file: string, keyCount: number, rowCount: number): Promise<void> {
  const options = {
    upstreamUrl: upstream.url,
    storage: file,
    price: { input: '1', output: '2' },
    logLevel: 'silent' as const,
    limits: { requestsPerMinute: 10_000_000, concurrency: 100 },
  };
  await (await startGateway(options)).close();
  fill(file, keyCount, rowCount);
  const gateway = await startGateway(options);
  const ask = async (key: string): Promise<number> => {
    const startedMs = performance.now();
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"model":"small","messages":[{"role":"user","content":"x"}]}',
    });
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    await response.text();
    return performance.now() - startedMs;
  };
  const times = async (keyOf: (round: number) => string | Promise<string>): Promise<number[]> => {
    const found: number[] = [];
    for (let round = 0; round < requests; round++) found.push(await ask(await keyOf(round)));
    return found;
  };
  for (let round = 0; round < warmUp; round++) await ask(gateway.key);
  const warm = await times(() => gateway.key);
  const cold = await times(async (round) => {
    // Any change of a key has all of them forgotten, so that ten keys are no warmer than many.
    await askAdmin(gateway, 'PATCH', `/keys/${idOf(3)}`, { name: `x${round}` });
    return secretOf((round * 47) % keyCount);
  });
  const pages: number[] = [];
  for (const query of ['limit=200', `limit=200&key=${idOf(7)}`, 'limit=200&model=small']) {
    const startedMs = performance.now();
    await askAdmin(gateway, 'GET', `/records?${query}`);
    pages.push(performance.now() - startedMs);
  }
  process.stdout.write(
    `${keyCount} keys, ${rowCount} ledger rows: request with the key remembered ${shown(warm)}, ` +
      `with it looked up afresh ${shown(cold)}; pages of 200 records ${pages.map((ms) => ms.toFixed(1)).join(', ')} ms\n`,
  );
  await gateway.close();
}

function shown(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(2);
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

function idOf(number: number): string {
  return `key_${String(number).padStart(12, '0')}`;
}

function secretOf(number: number): string {
  return `sk-tg-${String(number).padStart(12, '0')}-${'x'.repeat(43)}`;
}

/** Fills a database with keys that have a balance, and with records and their ledger rows. */
function fill(file: string, keyCount: number, rowCount: number): void {
  const database = new DatabaseSync(file);
  database.exec('BEGIN');
  const key = database.prepare(`INSERT INTO api_keys (id, hash, name, created_at) VALUES (?, ?, 'x', ?)`);
  const account = database.prepare('INSERT INTO accounts (key_id, balance) VALUES (?, 1000000000000)');
  for (let number = 0; number < keyCount; number++) {
    key.run(idOf(number), hashKey(secretOf(number)), number);
    account.run(idOf(number));
  }
  const record = database.prepare(
    `INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, outcome, status,
       input_tokens, output_tokens, usage_source, charge, settlement)
     VALUES (?, ?, ?, 'chat', 'sync', 'small', 'local', 1, 'completed', 200, 10, 10, 'upstream', 30, ?)`,
  );
  const posting = database.prepare(
    `INSERT INTO ledger (key_id, created_at, kind, delta, request_id, posting) VALUES (?, ?, 'charge', -30, ?, ?)`,
  );
  for (let number = 0; number < rowCount; number++) {
    const requestId = `req_${String(number).padStart(32, '0')}`;
    const keyId = idOf(number % keyCount);
    record.run(requestId, keyId, number, requestId);
    posting.run(keyId, number, requestId, requestId);
  }
  database.exec('COMMIT');
  database.close();
}
