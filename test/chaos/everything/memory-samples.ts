import { setTimeout as wait } from 'node:timers/promises';
import { median } from '../../bench/report/statistics.ts';
import { footprintOf } from './gateways.ts';
import type { Gateway } from './gateways.ts';

/** The pause between two samples, and the part of a run whose samples have one median, in milliseconds. */
const sampleMs = 5_000;
const partMs = 180_000;

/** When a run's memory counts as grown: what is filled once, is full by then, in milliseconds. */
const settledMs = 600_000;

/**
 * Samples the memory of a worker of all gateways, on average, until it is stopped. Resolves with the medians around the tenth
 * minute and at the end, in MB, as words; with the one at the end alone where the run is shorter.
 */
export async function sampleMemory(gateways: readonly Gateway[], stopped: AbortSignal): Promise<string> {
  const startedMs = performance.now();
  const samples: { readonly atMs: number; readonly megabytes: number }[] = [];
  while (!stopped.aborted) {
    await wait(sampleMs, undefined, { signal: stopped }).catch(() => {});
    const found = gateways.flatMap((gateway) => gateway.workers()).flatMap(megabytesOf);
    if (found.length > 0)
      samples.push({
        atMs: performance.now() - startedMs,
        megabytes: found.reduce((sum, one) => sum + one, 0) / found.length,
      });
  }
  const endMs = performance.now() - startedMs;
  const between = (fromMs: number, toMs: number): string =>
    median(
      samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs).map(({ megabytes }) => megabytes),
    ).toFixed(0);
  const end = `${between(endMs - partMs, endMs)} at the end`;
  if (endMs < settledMs + partMs) return end;
  return `${between(settledMs - partMs / 2, settledMs + partMs / 2)} around the tenth minute, ${end}`;
}

/** Nothing of a process that has just ended. */
function megabytesOf(pid: number): readonly number[] {
  try {
    return [footprintOf(pid).megabytes];
  } catch {
    return [];
  }
}
