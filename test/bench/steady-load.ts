import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { keyIdOf } from '../support/filled-database.ts';
import { countOption, onOff, readScript } from '../support/script-options.ts';
import { shown, startBenchGateway } from './bench-gateway.ts';
import { programFile } from '../support/program.ts';

/**
 * Measures whether anything on a large database delays answers: a steady load of keys with balances on 100,000 keys and
 * 1,000,000 records with their ledger, while audits run at their interval and record pages and ledger verifications
 * run repeatedly; with `--backups`, backups to the same disk as well. Exits with 1 when no answer came for longer than the
 * bound. `npm run bench steady -- --minutes 15 --per-second 30`
 */

const {
  minutes,
  'per-second': perSecond,
  backups,
} = readScript({
  name: 'bench steady',
  options: {
    minutes: countOption('how long the load takes', 15),
    'per-second': countOption('requests in each second', 30),
    backups: onOff('makes backups to the same disk, too'),
  },
});

/** The longest acceptable time without an answer on two idle cores, in milliseconds. */
const maxGapMs = 250;

/** The time between two reports, in milliseconds. */
const reportMs = 60_000;

/** The duration of the warm-up, which is printed but does not count, in milliseconds. */
const warmUpMs = 10_000;

const keys = 100_000;
const print = (text: string): void => void process.stdout.write(`${text}\n`);

const fillingMs = performance.now();
const gateway = await startBenchGateway({ keys, records: 1_000_000 });
print(`filled and started in ${((performance.now() - fillingMs) / 1_000).toFixed(0)} s`);

/** Runs an operator's command and prints its duration. Throws when it fails. */
async function command(...args: readonly string[]): Promise<void> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, [programFile, ...args], {
    env: { ...process.env, ...gateway.environment },
    cwd: gateway.folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const [code] = (await once(child, 'close')) as [number | null];
  print(`  ${args.join(' ')}: ${((performance.now() - startedMs) / 1_000).toFixed(1)} s: ${printed.trim()}`);
  if (code !== 0) throw new Error(`textgate ${args.join(' ')} failed`);
}

const over = new AbortController();
/** Repeats some work, with pauses, until the load is over. */
async function repeat(restMs: number, work: () => Promise<unknown>): Promise<void> {
  while (!over.signal.aborted) {
    await work();
    await sleep(restMs, undefined, { signal: over.signal }).catch(() => {});
  }
}
const page = (filter: string) => () => gateway.time(`/records?limit=200${filter}`);
const beside = Promise.all([
  repeat(500, page('')),
  repeat(500, page(`&key=${keyIdOf(7)}&model=small`)),
  repeat(500, page('&model=large')),
  repeat(500, () => gateway.time('/keys?limit=200')),
  repeat(60_000, () => command('ledger', 'verify')),
  ...(backups ? [repeat(60_000, () => command('backup', 'copy.db', '--force'))] : []),
]);

print(`warm-up: ${shown(await gateway.load({ perSecond, durationMs: warmUpMs }, keys))}`);
await gateway.diskDelayMs();
/** The longest gap, less what the disk itself took for one commit in the same minute. */
let longestGapMs = 0;
let failed = 0;
for (let leftMs = minutes * 60_000; leftMs > 0; leftMs -= reportMs) {
  const found = await gateway.load({ perSecond, durationMs: Math.min(leftMs, reportMs) }, keys);
  const diskMs = await gateway.diskDelayMs();
  print(`${shown(found)}; the disk's own longest commit: ${diskMs.toFixed(1)} ms`);
  longestGapMs = Math.max(longestGapMs, found.longestGapMs - diskMs);
  failed += Object.values(found.failures).reduce((sum, count) => sum + count, 0);
}
over.abort();
await beside;
await command('ledger', 'verify');
await gateway.close();
print(
  `longest gap between two answers: ${longestGapMs.toFixed(0)} ms beside the disk's own (bound: ${maxGapMs} ms); ${failed} failed`,
);
if (longestGapMs > maxGapMs || failed > 0) process.exitCode = 1;
