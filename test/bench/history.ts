import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { keepHistory } from '../../src/background/history/keep-history.ts';
import { historyGroupings } from '../../src/domain/history/counts.ts';
import { readHistory } from '../../src/operations/read-history.ts';
import { createHistory } from '../../src/storage/history.ts';
import { watchProcessLoad } from '../../src/telemetry/process-load.ts';
import { summary } from '../support/exchange-summary.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

/**
 * Measures what the history takes of a core, of memory and of the disk at a load, with requests to every model at every upstream,
 * and how long a day of it takes to read. The time of the load is that of a clock of its own: an hour takes seconds.
 */
const options = readScript({
  name: 'bench history',
  options: {
    minutes: countOption('minutes of the load', 60),
    'per-second': countOption('requests a second', 500),
    models: countOption('models', 20),
    upstreams: countOption('upstreams', 10),
    seed: seedOption(18),
  },
});
const random = seededNumbers(options.seed);
const print = (text: string): void => void process.stdout.write(`${text}\n`);

const intervalMs = 10_000;
const perInterval = (options['per-second'] * intervalMs) / 1_000;
const clock = createFakeClock(Date.UTC(2030, 0, 31));
const folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
const file = join(folder, 'textgate.db');
const engine = openThreadedEngine(file);
await engine.ready;
const store = createHistory(engine);
const load = watchProcessLoad();
const faults: string[] = [];
let ids = 0;
let written = Promise.withResolvers<void>();
const kept = keepHistory(
  {
    async write(...parts) {
      await store.write(...parts);
      written.resolve();
    },
  },
  {
    clock,
    ready: engine.ready,
    onFault: (message, error) => void faults.push(`${message}: ${String(error)}`),
    nextId: () => String(++ids),
    node: 'host:1',
    readLoad: () => load.read(),
    upstreamStates: () => ({}),
  },
);

const ended = Array.from({ length: 1_000 }, () => ({
  ...summary,
  model: `model-${Math.floor(random() * options.models)}`,
  upstream: `upstream-${Math.floor(random() * options.upstreams)}`,
  outcome: random() < 0.97 ? ('completed' as const) : ('upstream_failed' as const),
  // Most first texts come within half a second, few take many.
  firstTextMs: 200 * Math.exp(2 * random() - 1) + (random() < 0.05 ? 5_000 * random() : 0),
  chargeNanos: Math.floor(random() * 1e6),
}));

const usedBefore = process.memoryUsage.rss();
const heapOf = (): number => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
const heapBefore = heapOf();
const cpuBefore = process.cpuUsage();
let mostHeap = heapBefore;
const intervals = options.minutes * 6;
for (let interval = 0; interval < intervals; interval++) {
  for (let at = 0; at < perInterval; at++) {
    kept.sink.exchangeBegan();
    kept.sink.exchangeEnded(ended[Math.floor(random() * ended.length)] ?? summary);
  }
  // Before the minute ends it has the most.
  if (interval % 60 === 59) mostHeap = Math.max(mostHeap, heapOf());
  written = Promise.withResolvers<void>();
  for (let second = 0; second < intervalMs; second += 1_000) {
    clock.advance(1_000);
    await setImmediate();
  }
  await written.promise;
}
const { user, system } = process.cpuUsage(cpuBefore);
const loadMicroseconds = intervals * intervalMs * 1_000;
print(`CPU: ${(((user + system) / loadMicroseconds) * 100).toFixed(3)} % of a core`);
print(
  `heap: ${((mostHeap - heapBefore) / 1e6).toFixed(1)} MB${globalThis.gc === undefined ? ' (run with --expose-gc)' : ''}`,
);
print(
  `resident memory: ${((process.memoryUsage.rss() - usedBefore) / 1e6).toFixed(1)} MB more, this script's garbage included`,
);

for (const by of historyGroupings)
  for (const hours of [0.25, 1, 24]) {
    const startedMs = performance.now();
    const query = { fromMs: clock.now() - hours * 3_600_000, toMs: clock.now(), by };
    const { points } = await readHistory(query, { store, clock });
    const tookMs = performance.now() - startedMs;
    const longestMs = load.read().eventLoopDelayMs;
    print(
      `${hours} h by '${by}': ${points.length} points in ${tookMs.toFixed(0)} ms; event loop late by ${longestMs} ms`,
    );
  }
await kept.stop();
load.stop();
await engine.close();
print(`database: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
for (const fault of faults) print(fault);
rmSync(folder, { recursive: true });
