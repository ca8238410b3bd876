import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/composition/clock.ts';
import { keyEntry } from '../../src/domain/audit/audit-line.ts';
import type { AuditEntry } from '../../src/domain/audit/audit-line.ts';
import { nameOf } from '../../src/domain/audit/safe-text.ts';
import { createAuditTrail } from '../../src/storage/audit/audit-lines.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { countOption, oneOf, readScript, seedOption } from '../support/script-options.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase } from '../support/test-postgres.ts';

/**
 * Measures how long a page of the audit takes at its route, by what it is chosen by: the first call after a start, and
 * all others. Exits with 1 when one of them took longer than the bound.
 * `npm run bench audit -- --engine postgres`
 */
const options = readScript({
  name: 'bench audit',
  options: {
    engine: oneOf('the storage engine', ['sqlite', 'postgres']),
    lines: countOption('lines of 30 days', 100_000),
    samples: countOption('how often each page is read after each start', 10),
    seed: seedOption(20),
  },
});
const { engine, lines, samples, seed } = options;

/** How long any of the pages may take, in milliseconds, on a machine without other work. */
const maxMs = 300;

const startMs = Date.UTC(2030, 0);
const lineMs = (30 * 86_400_000) / lines;
const perUnit = 500;
const random = seededNumbers(seed);
const oneOfMany = (name: string, count: number): string => `${name}${Math.floor(random() * count)}`;

/** A change of a key, as most lines are: one of 50 operators has changed some terms of one of 1,000 keys. */
function someChange(number: number): AuditEntry {
  const before = oneOfMany('', 1_000);
  return keyEntry(
    {
      way: 'console',
      name: number === 7 ? 'seldom' : oneOfMany('operator-', 50),
      address: oneOfMany('192.0.2.', 250),
    },
    number % 1_000 === 0 ? 'key.revoke' : 'key.change',
    oneOfMany('key_00000000', 1_000),
    ['requestsPerMinute', 'budget.amount', 'tokensPerDay', 'queueWait'].map((field) => ({
      field,
      before,
      after: oneOfMany('', 1_000),
    })),
    nameOf(number === 9 ? 'the only one of its name' : oneOfMany('the service of the department ', 1_000)),
  );
}

async function fill(database: Engine): Promise<void> {
  let atMs = startMs;
  const trail = createAuditTrail(database, () => atMs);
  for (let done = 0; done < lines; done += perUnit) {
    atMs = startMs + done * lineMs;
    await trail.add(Array.from({ length: perUnit }, (_, at) => someChange(done + at)));
  }
}

/** Stands for the id of a key that there is. */
const ownKey = 'OWN_KEY';

/** What is read, by its query. */
const pages = {
  'search without a hit': 'search=nothing-has-this',
  'actor without a hit': 'actor=unknown',
  'search with one hit': 'search=ONLY one of its',
  'actor with one hit': 'actor=seldom',
  'action of 1 line in 1,000': 'action=key.revoke',
  'search with many hits': 'search=tokensperday',
  'actor with many hits': 'actor=operator-7',
  'key without a hit, and a search': `key=${ownKey}&search=nothing-has-this`,
  'action, actor and search without a hit': 'action=key.change&actor=operator-7&search=nothing-has-this',
  'the newest': '',
};

/** Reads a page at the route; resolves with the duration in milliseconds. */
async function readPage({ gateway, adminUrl, adminToken }: TestGateway, query: string): Promise<number> {
  const [own] = (await gateway.keys.list()).data;
  const beganMs = performance.now();
  const response = await fetch(
    `${adminUrl}/admin/audit?from=${new Date(startMs).toISOString()}&limit=100&${query.replace(ownKey, own?.id ?? '')}`,
    { headers: { authorization: `Bearer ${adminToken}` } },
  );
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`${query}: status ${response.status}`);
  return performance.now() - beganMs;
}

const times = new Map<string, { readonly first: number[]; readonly further: number[] }>();
const names = Object.keys(pages) as (keyof typeof pages)[];
const database = engine === 'postgres' ? await createDatabase() : null;
const folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
const file = join(folder, 'textgate.db');
const filled =
  database === null
    ? openThreadedEngine(file)
    : createPostgresEngine({ url: database.url, clock: systemClock });
await filled.ready;
await fill(filled);
await filled.close();
// After each start another page is the first one that is read.
for (const first of names) {
  const gateway = await startGateway(database === null ? { storage: file } : { databaseUrl: database.url });
  for (const name of [first, ...names.filter((one) => one !== first)]) {
    const found = times.get(name) ?? { first: [], further: [] };
    times.set(name, found);
    for (let sample = 0; sample < samples; sample++) {
      const tookMs = await readPage(gateway, pages[name]);
      (name === first && sample === 0 ? found.first : found.further).push(tookMs);
    }
  }
  await gateway.close();
}
await database?.drop();
rmSync(folder, { recursive: true });

process.stdout.write(
  `| ${engine}, ${lines} lines of 30 days, ms | first call | middle | longest |\n|---|---:|---:|---:|\n`,
);
let longest = 0;
for (const [name, { first, further }] of times) {
  const sorted = further.toSorted((one, other) => one - other);
  longest = Math.max(longest, ...first, ...further);
  const shown = [first[0], sorted[sorted.length >> 1], sorted.at(-1)].map((ms) => ms?.toFixed(0) ?? '–');
  process.stdout.write(`| ${name} | ${shown.join(' | ')} |\n`);
}
process.stdout.write(`longest ${longest.toFixed(0)} ms (bound: ${maxMs} ms)\n`);
if (longest > maxMs) process.exitCode = 1;
