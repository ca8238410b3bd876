import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { nextId } from '../../src/composition/next-id.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { beginningOf, openedRecord, payingKey, plainAttempt, settledRecord } from '../support/stored-rows.ts';
import { countOption, readScript } from '../support/script-options.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { openPostgres, postgresAbsence } from '../support/test-postgres.ts';

/**
 * Measures the disk that a request takes for ever, with its record, its posting and all indexes: `npm run bench disk --
 * --requests 100000`. Each was answered by one attempt with known usage, and charged, as most are.
 */

const { requests } = readScript({
  name: 'bench disk',
  options: { requests: countOption('requests on each engine, rounded up to hundreds', 100_000) },
});
const keys = 50;
const atOnce = 500;

/** Writes requests through the store, as a gateway does. */
async function fill(engine: Engine): Promise<void> {
  const store = createStore(engine, { nextId, now: () => Date.now(), report: () => {} });
  for (let number = 0; number < keys; number++) {
    const id = keyIdOf(number);
    await store.createKey({ ...payingKey, id, name: id }, id, 1_000_000_000_000);
  }
  for (let done = 0; done < requests; done += atOnce)
    await Promise.all(Array.from({ length: atOnce }, (_, index) => use(store, done + index)));
}

async function use(store: ReturnType<typeof createStore>, number: number): Promise<void> {
  const requestId = `req_${nextId()}`;
  const begun = {
    ...openedRecord,
    requestId,
    keyId: keyIdOf(number % keys),
    model: 'gpt-4o-mini',
    upstream: 'openai',
  };
  const usage = {
    inputTokens: 812,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 305,
    reasoningTokens: 0,
    totalTokens: 1_117,
  };
  await store.open(begun);
  await store.settle({
    ...settledRecord,
    requestId,
    upstream: 'openai',
    begun: beginningOf(begun),
    usage,
    usageSource: 'upstream',
    attempts: [
      {
        ...plainAttempt,
        upstream: 'openai',
        model: 'gpt-4o-mini-2024-07-18',
        startedMs: 3,
        durationMs: 2_214,
        usage,
      },
    ],
    chargeNanos: 304_800,
    firstTextMs: 412,
    totalMs: 2_219,
  });
}

function keyIdOf(number: number): string {
  return `key_${String(number).padStart(32, '0')}`;
}

function say(engine: string, parts: readonly (readonly [name: string, bytes: number])[]): void {
  const total = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  const lines = parts
    .filter(([, bytes]) => bytes / requests >= 1)
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, bytes]) => `  ${String(Math.round(bytes / requests)).padStart(5)}  ${name}\n`);
  process.stdout.write(
    `${engine}: ${Math.round(total / requests)} bytes for each of ${requests} requests\n${lines.join('')}`,
  );
}

const folder = mkdtempSync(join(tmpdir(), 'textgate-disk-'));
const file = join(folder, 'textgate.db');
const sqlite = openThreadedEngine(file);
await sqlite.ready;
await fill(sqlite);
await sqlite.close();
const database = new DatabaseSync(file, { readOnly: true });
const pages = database.prepare('SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name').all();
database.close();
say(
  `SQLite, a file of ${statSync(file).size} bytes`,
  pages.map((row) => [String(row['name']), Number(row['bytes'])]),
);
rmSync(folder, { recursive: true });

if (postgresAbsence === null) {
  const postgres = await openPostgres();
  await fill(postgres);
  const client = new Client({ connectionString: postgres.database.url });
  await client.connect();
  // What the requests in progress have left is used again by those that follow.
  await client.query('VACUUM open_rows');
  const found = await client.query<{ name: string; bytes: string }>(
    `SELECT relname AS name, pg_relation_size(oid) AS bytes FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')`,
  );
  await client.end();
  say(
    'PostgreSQL',
    found.rows.map(({ name, bytes }) => [name, Number(bytes)]),
  );
  await postgres.close();
}
