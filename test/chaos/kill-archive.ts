import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { fillDatabase } from '../support/filled-database.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

/**
 * Kills the removal of old records with SIGKILL at random moments, again and again until it comes to its end. After every
 * kill each record is in the database, in the archive, or, if the kill fell between the two, in both; at the end in the
 * archive, once; and the ledger balances each time. `npm run chaos archive -- --kills 20 --seed 1`
 */

const { kills, seed: given } = readScript({
  name: 'chaos archive',
  options: { kills: countOption('kills, each with 1,500 more records', 20), seed: seedOption(null) },
});
const records = 1_500 * kills;
/** The longest time from the beginning of a removal to its kill, in milliseconds. */
const maxLifeMs = 120;
const startMs = Date.UTC(2025, 0, 2) - records / 2;

const { random, seed } = randomNumbers(given);
const faults: string[] = [];
const folder = mkdtempSync(join(tmpdir(), 'textgate-chaos-archive-'));
const [file, archive] = [join(folder, 'textgate.db'), join(folder, 'archive')];
const engine = openThreadedEngine(file);
await engine.ready;
await engine.close();
fillDatabase(file, { keys: 7, records, startMs });
const all = new Set(idsLeft());

let killed = 0;
for (let isOver = false; !isOver;) {
  const child = fork(join(import.meta.dirname, 'archive-child.ts'), [
    file,
    archive,
    String(startMs + records),
  ]);
  const ended = once(child, 'close') as Promise<[number | null]>;
  await once(child, 'message');
  const timer = killed < kills ? setTimeout(() => child.kill('SIGKILL'), random() * maxLifeMs) : undefined;
  const [code] = await ended;
  clearTimeout(timer);
  isOver = code !== null;
  if (isOver && code !== 0) faults.push(`a removal ended with ${code}`);
  if (!isOver) killed++;
  await check(isOver);
}
rmSync(folder, { recursive: true });
process.stdout.write(`${killed} kills, ${records} records, faults ${faults.length} (seed ${seed})\n`);
if (killed < kills) faults.push(`it came to its end after ${killed} kills`);
if (faults.length > 0) {
  process.stderr.write(`${faults.slice(0, 20).join('\n')}\n`);
  process.exit(1);
}

async function check(isOver: boolean): Promise<void> {
  const opened = openThreadedEngine(file);
  await opened.ready;
  faults.push(...(await verifyLedger(createLedgerAudit(opened))).faults);
  await opened.close();
  const [left, archived] = [idsLeft(), idsArchived()];
  const found = new Set([...left, ...archived]);
  if (found.size !== records || [...found].some((id) => !all.has(id)))
    faults.push(`${found.size} records found`);
  if (new Set(archived).size !== archived.length) faults.push('a record is twice in the archive');
  if (isOver && (left.length > 0 || archived.length !== records))
    faults.push(`${left.length} are left, ${archived.length} archived`);
}

function idsLeft(): readonly string[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare('SELECT request_id FROM records').all();
  database.close();
  return rows.map((row) => String(row['request_id']));
}

/** The ids in the archive. The last line of a file may be cut off: its record is still in the database. */
function idsArchived(): readonly string[] {
  const names = readdirSync(folder).includes('archive') ? readdirSync(archive) : [];
  return names.flatMap((name) =>
    readFileSync(join(archive, name), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { request_id: string }).request_id),
  );
}
