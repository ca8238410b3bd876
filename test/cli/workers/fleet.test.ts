import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Fleet } from '../../../src/cli/workers/fleet.ts';
import type { WorkerEnd, WorkerProcess } from '../../../src/cli/workers/fork-worker.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

/** A worker whose start and end the test decides. */
interface FakeWorker extends WorkerProcess {
  readonly isFirst: boolean;
  readonly told: string[];
  start(): Promise<void>;
  exit(end?: WorkerEnd): Promise<void>;
}

const crashed: WorkerEnd = { code: 1, signal: null, isOverdue: false };
const killed: WorkerEnd = { code: null, signal: 'SIGKILL', isOverdue: false };

function createFleet() {
  const clock = createFakeClock();
  const workers: FakeWorker[] = [];
  const delays: number[] = [];
  const fork = ({ isFirst }: { readonly isFirst: boolean }): FakeWorker => {
    const started = Promise.withResolvers<boolean>();
    const ended = Promise.withResolvers<WorkerEnd>();
    let hasStarted = false;
    const worker: FakeWorker = {
      id: workers.length + 1,
      pid: undefined,
      isFirst,
      told: [],
      get hasStarted() {
        return hasStarted;
      },
      sentMessages: 0,
      lastFigures: null,
      started: started.promise,
      ended: ended.promise,
      ask: async () => undefined,
      leave: () => void worker.told.push('leave'),
      end: () => void worker.told.push('end'),
      retire: () => void worker.told.push('retire'),
      kill: () => void worker.told.push('kill'),
      async start() {
        hasStarted = true;
        started.resolve(true);
        await setImmediate();
      },
      async exit(end = { code: 0, signal: null, isOverdue: false }) {
        started.resolve(false);
        ended.resolve(end);
        await setImmediate();
      },
    };
    workers.push(worker);
    return worker;
  };
  const fleet = new Fleet({
    clock,
    fork,
    drainMs: () => 10_000,
    onLost: (_worker, _end, delayMs) => void delays.push(delayMs),
    onEnd: () => {},
  });
  const at = (index: number): FakeWorker => workers[index] as FakeWorker;
  return { fleet, clock, workers, delays, at };
}

/** A fleet of two workers that take requests. */
async function createStarted() {
  const made = createFleet();
  const isUp = made.fleet.start(2);
  await made.at(0).start();
  await made.at(1).start();
  expect(await isUp).toBe(true);
  return made;
}

/** What has happened of a promise. */
async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  return Promise.race([promise, setImmediate('pending')]);
}

describe('a start', () => {
  test('begins with one worker, and starts the others when that one takes requests', async () => {
    const { fleet, workers, at } = createFleet();
    const isUp = fleet.start(3);
    expect(workers.map(({ isFirst }) => isFirst)).toEqual([true]);
    await at(0).start();
    expect(workers.map(({ isFirst }) => isFirst)).toEqual([true, false, false]);
    await at(1).start();
    expect(await stateOf(isUp)).toBe('pending');
    await at(2).start();
    expect(await isUp).toBe(true);
  });

  test('fails with the first worker that does not start', async () => {
    const { fleet, at, workers } = createFleet();
    const isUp = fleet.start(2);
    await at(0).exit(crashed);
    expect(await isUp).toBe(false);
    expect(workers).toHaveLength(1);
  });

  test('fails when a worker ends while another one starts', async () => {
    const { fleet, at } = createFleet();
    const isUp = fleet.start(2);
    await at(0).start();
    await at(0).exit(crashed);
    await at(1).start();
    expect(await isUp).toBe(false);
  });

  test('has a successor for a first worker that is killed, which makes the tables and the notices', async () => {
    const { fleet, clock, delays, workers, at } = createFleet();
    const isUp = fleet.start(2);
    await at(0).exit(killed);
    clock.advance(0);
    expect([workers.map(({ isFirst }) => isFirst), delays]).toEqual([[true, true], [0]]);
    await at(1).start();
    await at(2).start();
    expect(await isUp).toBe(true);
    expect(workers.map(({ isFirst }) => isFirst)).toEqual([true, true, false]);
  });

  test('has a successor for any worker that is killed, also for one that took requests, and waits for it', async () => {
    const { fleet, clock, workers, at } = createFleet();
    const isUp = fleet.start(2);
    await at(0).start();
    await at(1).exit(killed);
    await at(0).exit(killed);
    clock.advance(0);
    await at(2).start();
    expect(await stateOf(isUp)).toBe('pending');
    await at(3).start();
    expect(await isUp).toBe(true);
    expect(workers.map(({ isFirst }) => isFirst)).toEqual([true, false, false, false]);
    expect(fleet.serving).toEqual([at(3), at(2)]);
  });

  test('fails with the successor of a killed worker that ends by itself, and with one that takes too long', async () => {
    for (const end of [crashed, { ...killed, isOverdue: true }]) {
      const { fleet, clock, workers, at } = createFleet();
      const isUp = fleet.start(2);
      await at(0).start();
      await at(1).exit(killed);
      clock.advance(0);
      await at(2).exit(end);
      expect(await isUp).toBe(false);
      clock.advance(60_000);
      expect(workers).toHaveLength(3);
    }
  });

  test('is given up when five workers in a row are killed, although another one takes requests', async () => {
    const { fleet, clock, workers, at } = createFleet();
    void fleet.start(2);
    await at(0).start();
    for (let round = 0; round < 5; round++) {
      expect(await stateOf(fleet.failed)).toBe('pending');
      await at(workers.length - 1).exit(killed);
      clock.advance(30_000);
    }
    expect(await stateOf(fleet.failed)).toBe(undefined);
    expect(workers).toHaveLength(6);
  });

  test('that is ended replaces nothing', async () => {
    const { fleet, clock, workers, at } = createFleet();
    const isUp = fleet.start(2);
    await at(0).exit(killed);
    const ended = fleet.end();
    clock.advance(60_000);
    expect([await isUp, await ended, workers.length]).toEqual([false, true, 1]);
  });
});

describe('a worker that ends by itself', () => {
  test('is replaced at once, and ever later when its successors end soon', async () => {
    const { clock, workers, delays, at } = await createStarted();
    for (let round = 0; round < 10; round++) {
      await at(workers.length - 1).exit(crashed);
      clock.advance(delays.at(-1) ?? 0);
      await at(workers.length - 1).start();
    }
    expect(delays).toEqual([0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    clock.advance(60_000);
    await at(workers.length - 1).exit(crashed);
    expect(delays.at(-1)).toBe(0);
  });

  test('has further successors while another one takes requests, however many can not start', async () => {
    const { fleet, clock, workers, at } = await createStarted();
    for (let round = 0; round < 10; round++) {
      await at(workers.length - 1).exit(crashed);
      clock.advance(30_000);
    }
    expect(workers).toHaveLength(12);
    expect(await stateOf(fleet.failed)).toBe('pending');
  });

  test('is the end of all when none takes requests and five in a row can not start', async () => {
    const { fleet, clock, workers, at } = await createStarted();
    await at(0).exit(crashed);
    await at(1).exit(crashed);
    clock.advance(0);
    for (let round = 0; round < 5; round++) {
      expect(await stateOf(fleet.failed)).toBe('pending');
      await at(workers.length - 1).exit(crashed);
      clock.advance(30_000);
    }
    expect(await stateOf(fleet.failed)).toBe(undefined);
  });
});

describe('a replacement of all workers', () => {
  test('ends each one when its successor takes requests, one by one', async () => {
    const { fleet, workers, at } = await createStarted();
    const isDone = fleet.restart(2);
    expect(workers).toHaveLength(3);
    expect(at(0).told).toEqual([]);
    await at(2).start();
    expect(at(0).told).toEqual(['retire']);
    expect(workers).toHaveLength(3);
    await at(0).exit();
    expect(at(1).told).toEqual([]);
    await at(3).start();
    expect(at(1).told).toEqual(['retire']);
    await at(1).exit();
    expect(await isDone).toBe(true);
    expect(fleet.serving).toEqual([at(2), at(3)]);
  });

  test('stops at a successor that can not start, and leaves the others as they are', async () => {
    const { fleet, workers, delays, at } = await createStarted();
    const isDone = fleet.restart(2);
    await at(2).exit(crashed);
    expect(await isDone).toBe(false);
    expect([workers.length, delays, at(0).told]).toEqual([3, [], []]);
    expect(fleet.serving).toEqual([at(0), at(1)]);
  });

  test('starts no second successor for a worker that ends meanwhile', async () => {
    const { fleet, clock, workers, at } = await createStarted();
    const isDone = fleet.restart(1);
    expect(at(1).told).toEqual(['retire']);
    await at(1).exit();
    await at(0).exit(crashed);
    await at(2).start();
    expect(await isDone).toBe(true);
    clock.advance(60_000);
    expect(workers).toHaveLength(3);
  });

  test('adds workers where there are to be more', async () => {
    const { fleet, at } = await createStarted();
    const isDone = fleet.restart(3);
    for (const index of [0, 1]) {
      await at(index + 2).start();
      await at(index).exit();
    }
    await at(4).start();
    expect(await isDone).toBe(true);
    expect(fleet.serving).toHaveLength(3);
  });

  test('kills a worker that does not end within its drain time and forty seconds', async () => {
    const { fleet, clock, at } = await createStarted();
    void fleet.restart(2);
    await at(2).start();
    clock.advance(49_999);
    expect(at(0).told).toEqual(['retire']);
    clock.advance(1);
    await setImmediate();
    expect(at(0).told).toEqual(['retire', 'kill']);
  });
});

describe('the end', () => {
  test('is told to all at once, also to one that is starting, and nothing is replaced any more', async () => {
    const { fleet, clock, workers, at } = await createStarted();
    await at(0).exit(crashed);
    clock.advance(0);
    const ended = fleet.end();
    expect(workers.map(({ told }) => told)).toEqual([[], ['end'], ['end']]);
    await at(1).exit();
    await at(2).exit();
    expect(await ended).toBe(true);
    clock.advance(60_000);
    expect(workers).toHaveLength(3);
  });

  test('tells of a worker that did not end well', async () => {
    const { fleet, at } = await createStarted();
    const ended = fleet.end();
    await at(0).exit();
    await at(1).exit(crashed);
    expect(await ended).toBe(false);
  });
});

test('a fleet that is leaving has all workers say that they are not ready, also one that starts later', async () => {
  const { fleet, clock, workers, at } = await createStarted();
  fleet.leave();
  await at(0).exit(crashed);
  clock.advance(60_000);
  await setImmediate();
  expect(workers.map(({ told }) => told)).toEqual([['leave'], ['leave'], []]);
  await at(2).start();
  expect(at(2).told).toEqual(['leave']);
});
