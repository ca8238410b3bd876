import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { checkLedger } from './check-ledger.ts';
import { askNumber } from './numbered-client.ts';
import type { Acknowledged } from './numbered-client.ts';
import { startNumberedUpstream } from './numbered-upstream.ts';

/**
 * Loads a gateway and kills it with SIGKILL at random moments, repeatedly, for each durability mode. Checks the ledger after
 * every start: each answer that a client received whole has exactly one settled record, charged by the tokens that the
 * upstream counted; and usage: it is the sum of the records. `npm run chaos -- --kills 100 --seed 1`
 */

const { kills, seed: given } = readScript({
  name: 'chaos kills',
  options: { kills: countOption('kills in each durability mode', 100), seed: seedOption(null) },
});
const atATime = 8;
/** The longest time from a start to its kill, in milliseconds. */
const maxLifeMs = 250;
const maxRecoveryMs = 1_000;

const { random, seed } = randomNumbers(given);
const faults: string[] = [];
const upstream = await startNumberedUpstream();

for (const durability of ['normal', 'full'] as const) await runMode(durability);
upstream.close();
if (faults.length > 0) {
  process.stderr.write(`${faults.slice(0, 20).join('\n')}\n${faults.length} faults (seed ${seed})\n`);
  process.exit(1);
}

async function runMode(durability: 'normal' | 'full'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-chaos-'));
  const file = join(folder, 'textgate.db');
  const acknowledged: Acknowledged = new Map();
  let worstStartMs = 0;
  let lost = 0;
  for (let kill = 0; kill < kills; kill++) {
    const child = fork(join(import.meta.dirname, 'gateway-child.ts'), [upstream.url, file, durability]);
    const [{ url, key, startMs }] = (await once(child, 'message')) as [
      { url: string; key: string; startMs: number },
    ];
    worstStartMs = Math.max(worstStartMs, startMs);
    await loadUntilKilled(child, url, key, acknowledged);
    const found = await checkLedger(file, acknowledged, upstream.served);
    faults.push(...found.faults);
    lost += found.open;
  }
  if (worstStartMs > maxRecoveryMs) faults.push(`${durability}: recovery took ${worstStartMs} ms`);
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
  acknowledged: Acknowledged,
): Promise<void> {
  const killed = once(child, 'close');
  setTimeout(() => child.kill('SIGKILL'), random() * maxLifeMs);
  const worker = async (): Promise<void> => {
    while (child.exitCode === null && child.signalCode === null)
      await askNumber(url, key, random() < 0.5, acknowledged).catch(() => setImmediate());
  };
  await Promise.all([killed, ...Array.from({ length: atATime }, worker)]);
}
