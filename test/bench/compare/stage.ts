import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AllOpen, LoadOrder, LoadResult } from '../client/order.ts';
import { forkModule } from '../subjects/processes.ts';
import { serverUse } from '../subjects/postgres-server.ts';
import type { ServerUse } from '../subjects/postgres-server.ts';
import type { RunningSubject, Subject } from '../subjects/subject.ts';
import { processTree, readUsage } from './process-usage.ts';

/** How long work after the last answer is waited for before usage is read, in milliseconds. */
const settleMs = 50;

/** How often memory is read during a load, in milliseconds. */
const memoryPollMs = 100;

/** What one load did to a subject. */
export interface Measured {
  readonly result: LoadResult;
  /** CPU time of the subject, in milliseconds, and the share of one core that it, client and simulator had. */
  readonly cpuMs: number;
  readonly cpuShare: number;
  readonly clientShare: number;
  readonly simulatorShare: number;
  /** Resident memory before, after, and the most of it, in bytes. */
  readonly rssBefore: number;
  readonly rssAfter: number;
  readonly rssMax: number;
  /** What its PostgreSQL server did meanwhile; null without one. */
  readonly server: ServerUse | null;
  /** While all streams were open at once; null if they never were, or were not held open for it. */
  readonly steady: Steady | null;
}

/** A subject while all streams are open. */
interface Steady {
  readonly rssBytes: number;
  /** The share of one core. */
  readonly cpuShare: number;
}

/** The simulated upstream and the load generator, and what runs between them. */
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'textgate-bench-'));
  readonly #client: ChildProcess;
  readonly #simulator: ChildProcess;
  readonly #openFiles: number | null;
  /** Rejects when one of the two ends: a load that it was part of would never report. */
  readonly #broken: Promise<never>;
  #simulatorPort = 0;

  private constructor(openFiles: number | null) {
    const module = (...path: string[]): string => join(import.meta.dirname, '..', ...path);
    this.#openFiles = openFiles;
    this.#client = forkModule(module('client', 'child-client.ts'), openFiles);
    this.#simulator = forkModule(module('simulator', 'child-simulator.ts'), openFiles);
    this.#broken = Promise.race([
      failWhenEnded(this.#client, 'the load generator'),
      failWhenEnded(this.#simulator, 'the simulator'),
    ]);
    // They also end when the stage is closed, while no load waits for this.
    this.#broken.catch(() => {});
    process.on('exit', () => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Starts both; `openFiles` raises their limit of open files, and that of the subjects. */
  static async open(openFiles: number | null = null): Promise<Stage> {
    const stage = new Stage(openFiles);
    const [port] = (await Promise.race([
      once(stage.#simulator, 'message'),
      once(stage.#simulator, 'close').then(() => [null]),
    ])) as [number | null];
    if (port === null)
      throw new Error(
        `the simulator can't be started${openFiles === null ? '' : ` with ${openFiles} open files`}`,
      );
    stage.#simulatorPort = port;
    return stage;
  }

  /** Starts a subject in a folder of its own. */
  start(subject: Subject): Promise<RunningSubject> {
    const folder = mkdtempSync(join(this.folder, `${subject.name}-`));
    return subject.start({ simulatorPort: this.#simulatorPort, folder, openFiles: this.#openFiles });
  }

  /**
   * Runs a load on all gateways of a subject and reads what it took; one at a time. Streams that the simulator holds open
   * are released when all of them have been open for `steadyMs`. `completed` is called when all are open, and may open
   * others besides them first.
   */
  async measure(
    subject: Pick<RunningSubject, 'pid' | 'port' | 'shared'>,
    order: Omit<LoadOrder, 'ports'>,
    steadyMs: number | null = null,
    completed: () => Promise<void> = async () => {},
  ): Promise<Measured> {
    const nodes = [subject, ...(subject.shared?.others ?? [])];
    const pids = nodes.flatMap(({ pid }) => (pid === null ? [] : processTree(pid)));
    const ports = nodes.map(({ port }) => port);
    const serverBefore = await subject.shared?.server.read();
    const sides = [this.#client, this.#simulator].map((child) => child.pid ?? 0);
    const before = [pids, ...sides.map((side) => [side])].map(readUsage);
    let rssMax = before[0]?.rssBytes ?? 0;
    let steady: Steady | null = null;
    const poll = setInterval(() => {
      rssMax = Math.max(rssMax, readUsage(pids).rssBytes);
    }, memoryPollMs);
    const startedMs = performance.now();
    const result = await this.#load({ ...order, ports }, async () => {
      if (steadyMs === null) return;
      await completed();
      const opened = readUsage(pids);
      await sleep(steadyMs);
      const { cpuMs, rssBytes } = readUsage(pids);
      steady = { rssBytes, cpuShare: (cpuMs - opened.cpuMs) / steadyMs };
      if (this.#simulator.connected) this.#simulator.send('release', () => {});
    }).finally(() => clearInterval(poll));
    const elapsedMs = performance.now() - startedMs;
    await sleep(settleMs);
    const serverAfter = await subject.shared?.server.read();
    const after = [pids, ...sides.map((side) => [side])].map(readUsage);
    const [cpuMs = 0, clientMs = 0, simulatorMs = 0] = after.map(
      (usage, index) => usage.cpuMs - (before[index]?.cpuMs ?? 0),
    );
    const rssAfter = after[0]?.rssBytes ?? 0;
    return {
      result,
      cpuMs,
      cpuShare: cpuMs / elapsedMs,
      clientShare: clientMs / elapsedMs,
      simulatorShare: simulatorMs / elapsedMs,
      rssBefore: before[0]?.rssBytes ?? 0,
      rssAfter,
      rssMax: Math.max(rssMax, rssAfter),
      server:
        serverBefore === undefined || serverAfter === undefined ? null : serverUse(serverBefore, serverAfter),
      steady,
    };
  }

  close(): void {
    for (const side of [this.#client, this.#simulator]) if (side.connected) side.disconnect();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #load(order: LoadOrder, allOpen: () => Promise<void>): Promise<LoadResult> {
    // A failure is that of a process that has ended, which `#broken` reports.
    if (this.#client.connected) this.#client.send(order, () => {});
    const result = new Promise<LoadResult>((resolve, reject) => {
      const listen = (message: LoadResult | AllOpen): void => {
        if (message.kind === 'all open') return void allOpen().catch(reject);
        this.#client.off('message', listen);
        resolve(message);
      };
      this.#client.on('message', listen);
    });
    return Promise.race([result, this.#broken]);
  }
}

/** Rejects when a process ends, or can't be reached. */
async function failWhenEnded(child: ChildProcess, name: string): Promise<never> {
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  throw new Error(`${name} has ended (${signal ?? `code ${code}`})`);
}
