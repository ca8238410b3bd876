import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { postgresPrograms } from '../support/postgres-server.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { playAwayDatabase } from './away-database.ts';
import { checkLedger } from './check-ledger.ts';
import { askNumber } from './numbered-client.ts';
import type { Acknowledged } from './numbered-client.ts';
import { startNumberedUpstream } from './numbered-upstream.ts';
import { databaseIn, serveIn } from './served-process.ts';
import type { ServedProcess } from './served-process.ts';

/**
 * Outages of a machine under a gateway with load and paying keys, each on a gateway of its own: a log that can't be written,
 * a full disk, a dead database thread, a deleted database. Afterwards the gateway is started again, and the ledger must
 * match exactly what clients received. `npm run chaos outages`; takes about three minutes. The last outage is that of a
 * PostgreSQL: `-- --minutes 10` plays that one alone, for so long.
 */

const given = readScript({
  name: 'chaos outages',
  options: {
    minutes: countOption('for how long PostgreSQL is away; with it only this outage is played', null),
    seed: seedOption(null),
  },
});

const atATime = 8;
const keyCount = 4;
/** How long the load runs before the outage, and for how long the outage lasts, in milliseconds. */
const quietMs = 1_500;
const outageMs = 4_000;
/** How soon `/readyz` must report a database that accepts no writes, and one whose file is deleted, in milliseconds. */
const maxTellMs = { writes: 1_500, file: 15_000 };

interface Outage {
  readonly name: string;
  /** The destination of the log; it is discarded by default. */
  readonly stdout?: () => number | 'pipe';
  /** Whether the database must be on a small disk of its own. */
  readonly smallDisk?: true;
  /** Why the service must not be ready during the outage, if requests can't be recorded. */
  readonly unready?: keyof typeof maxTellMs;
  /** The expected exit code; 0 by default. */
  readonly exitCode?: number;
  begin?(folder: string, served: ServedProcess): void;
  end?(folder: string): void;
}

const outages: readonly Outage[] = [
  { name: 'a log on a full disk', stdout: () => openSync('/dev/full', 'w') },
  { name: 'a log pipe that is never read', stdout: () => 'pipe' },
  {
    name: 'a log pipe that is closed',
    stdout: () => 'pipe',
    begin: (_folder, { child }) => void child.stdout?.destroy(),
  },
  { name: 'a full disk for a while', smallDisk: true, unready: 'writes', begin: fillDisk, end: freeDisk },
  { name: 'a full disk until the end', smallDisk: true, unready: 'writes', begin: fillDisk },
  { name: 'a dead database thread', begin: (_folder, { child }) => void child.kill('SIGUSR2') },
  {
    name: 'a database thread that dies twice',
    unready: 'writes',
    exitCode: 1,
    begin(_folder, { child }) {
      child.kill('SIGUSR2');
      setTimeout(() => child.kill('SIGUSR2'), 500);
    },
  },
  {
    name: 'a deleted database',
    unready: 'file',
    exitCode: 1,
    begin: (folder) => rmSync(join(folder, 'data'), { recursive: true }),
  },
];

/** How long PostgreSQL is away, and the load runs before and afterwards, without `--minutes`; in milliseconds. */
const shortAway = { awayMs: 20_000, quietMs: 10_000 };

const upstream = await startNumberedUpstream();
let faulty = 0;
if (given.minutes === null) for (const outage of outages) faulty += await play(outage);
upstream.close();
faulty += await playPostgres();
process.exit(faulty === 0 ? 0 : 1);

/** Plays the outage of a PostgreSQL; returns 1 if anything went wrong. */
async function playPostgres(): Promise<number> {
  if (postgresPrograms === null) {
    process.stdout.write(
      'a PostgreSQL that is away: skipped: there is no initdb in PATH or /usr/lib/postgresql/*/bin\n',
    );
    return given.minutes === null ? 0 : 1;
  }
  const { random, seed } = randomNumbers(given.seed);
  const long = given.minutes === null ? shortAway : { awayMs: given.minutes * 60_000, quietMs: 60_000 };
  const { figures, faults } = await playAwayDatabase({ random, ...long });
  process.stdout.write(
    `a PostgreSQL that is away for ${long.awayMs / 1_000} s: ${figures}; faults ${faults.length} (seed ${seed})\n`,
  );
  for (const fault of faults.slice(0, 10)) process.stdout.write(`  ${fault}\n`);
  return faults.length > 0 ? 1 : 0;
}

/** Runs one outage; returns 1 if anything went wrong. */
async function play(outage: Outage): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-outage-'));
  if (outage.smallDisk) mount(folder);
  const stdout = outage.stdout?.() ?? 'ignore';
  const served = await serveIn(folder, upstream.url, stdout);
  const keys = await Promise.all(
    Array.from({ length: keyCount }, (_, index) => served.createKey(`payer ${index}`, '100.00')),
  );
  const acknowledged: Acknowledged = new Map();
  const load = startLoad(served.url, keys, acknowledged);
  await wait(quietMs);

  const before = acknowledged.size;
  outage.begin?.(folder, served);
  const maxToldMs = outage.unready === undefined ? 0 : maxTellMs[outage.unready];
  const toldMs = outage.unready === undefined ? 0 : await timeUntilUnready(served, maxToldMs);
  await wait(outageMs);
  const during = acknowledged.size - before;
  outage.end?.(folder);
  await wait(quietMs);
  const after = acknowledged.size - before - during;
  const ending = await served.end();
  await load.stop();

  if (typeof stdout === 'number') closeSync(stdout);
  if (outage.smallDisk && outage.end === undefined) freeDisk(folder);
  const again = await serveIn(folder, upstream.url);
  const endingAgain = await again.end();
  const { faults } = await checkLedger(databaseIn(folder), acknowledged, upstream.served);
  if (outage.smallDisk) spawnSync('umount', ['-l', folder]);
  rmSync(folder, { recursive: true });

  const wrong = [
    ...faults,
    ...(ending === (outage.exitCode ?? 0) ? [] : [`ended with ${ending}, not ${outage.exitCode ?? 0}`]),
    ...(endingAgain === 0 ? [] : [`the next start ended with ${endingAgain}`]),
    ...(toldMs <= maxToldMs ? [] : [`/readyz told after ${toldMs} ms`]),
    ...(before > 0 ? [] : ['no answer came before it']),
    ...(outage.unready || during > 0 ? [] : ['no answer came while it lasted']),
    ...(outage.end === undefined || after > 0 ? [] : ['no answer came after it']),
  ];
  process.stdout.write(
    `${outage.name}: whole answers before ${before}, during ${during}, after ${after}; ` +
      `${outage.unready ? `/readyz told after ${Math.round(toldMs)} ms; ` : ''}exit ${ending}; faults ${wrong.length}\n`,
  );
  for (const fault of wrong.slice(0, 10)) process.stdout.write(`  ${fault}\n`);
  return wrong.length > 0 ? 1 : 0;
}

/** Asks without a pause, alternately streamed and whole, until it is stopped; repeats questions that fail. */
function startLoad(url: string, keys: readonly string[], acknowledged: Acknowledged) {
  const stopped = new AbortController();
  const work = async (_: unknown, worker: number): Promise<void> => {
    const key = keys[worker % keys.length] ?? '';
    for (let turn = worker; !stopped.signal.aborted; turn++) {
      const status = await askNumber(url, key, turn % 2 === 0, acknowledged).catch(() => 0);
      if (status !== 200) await wait(20);
    }
  };
  const working = Promise.all(Array.from({ length: atATime }, work));
  return {
    async stop() {
      stopped.abort();
      await working;
    },
  };
}

async function timeUntilUnready(served: ServedProcess, limitMs: number): Promise<number> {
  const startMs = performance.now();
  while ((await served.readiness()) === 200 && performance.now() - startMs <= limitMs) await wait(50);
  return performance.now() - startMs;
}

function mount(folder: string): void {
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'none', folder]);
  if (status !== 0) throw new Error('a small disk could not be mounted: this needs the rights of root');
}

/** Fills the disk to the last byte. */
function fillDisk(folder: string): void {
  mkdirSync(join(folder, 'data'), { recursive: true });
  for (const bytes of [65_536, 1]) {
    try {
      for (;;) writeFileSync(join(folder, 'filler'), Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}

function freeDisk(folder: string): void {
  rmSync(join(folder, 'filler'));
}
