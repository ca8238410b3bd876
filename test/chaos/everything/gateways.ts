import { mkdirSync, openSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serveConfig } from '../served-process.ts';
import type { ServedProcess } from '../served-process.ts';
import { freePort } from '../../support/free-port.ts';
import type { DrawnConfig } from './settings.ts';

/** A time in which a gateway was broken or away, on the monotonic clock of this process, in milliseconds. */
export interface Broken {
  readonly node: number;
  readonly fromMs: number;
  toMs: number;
}

/** A gateway that is broken and started again in one folder, whose log goes on in one file. */
export interface Gateway {
  readonly node: number;
  readonly served: ServedProcess;
  /** Whether it is being ended or started. */
  isAway(): boolean;
  /** The process ids of its workers; of a gateway without workers, its own. */
  workers(): readonly number[];
  start(config: DrawnConfig): Promise<void>;
  /** Has it read another config. */
  reload(config: DrawnConfig): void;
  /** Ends it with SIGTERM and starts it again; resolves with what went wrong. */
  drain(config: DrawnConfig): Promise<readonly string[]>;
  /** Ends it with SIGKILL, with its workers or without, and starts it again. */
  kill(config: DrawnConfig, withWorkers: boolean): Promise<void>;
  /** Ends one of its workers with SIGKILL, if there is one. */
  killWorker(random: () => number): void;
  /** The lines of its log. */
  log(): string;
}

/** How long connections may break after a worker was killed, in milliseconds. */
const afterKillMs = 2_000;

/** One in a folder; what it notes in `broken` explains broken connections. */
export function createGateway(node: number, folder: string, broken: Broken[]): Gateway {
  mkdirSync(folder, { recursive: true });
  const logFile = join(folder, 'log');
  let served: ServedProcess | null = null;
  const current = (): ServedProcess => {
    if (served === null) throw new Error('a gateway was never started');
    return served;
  };
  const kill = (pid: number): void => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  };
  // Fixed: port 0 would be another one where the first worker is killed before the next one listens.
  const ports = Promise.all([freePort(), freePort()]);
  const start = async (config: DrawnConfig): Promise<void> => {
    const [port, adminPort] = await ports;
    const server = { ...config.server, port };
    served = await serveConfig({
      folder,
      config: { ...config, server },
      adminPort,
      stdout: openSync(logFile, 'a'),
    });
  };
  const workers = (): readonly number[] => {
    const { pid = 0 } = current().child;
    const children = childrenOf(pid);
    if (children.length > 0) return children;
    return current().child.exitCode === null && current().child.signalCode === null ? [pid] : [];
  };
  /** Whatever happens until it is over explains broken connections. */
  const during = async (work: () => Promise<void>): Promise<void> => {
    const time: Broken = { node, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
    broken.push(time);
    await work();
    time.toMs = performance.now() + afterKillMs;
  };
  return {
    node,
    get served() {
      return current();
    },
    isAway: () => broken.some((time) => time.node === node && time.toMs === Number.POSITIVE_INFINITY),
    workers,
    start,
    reload(config) {
      const { url, adminUrl, adminToken, child } = current();
      const server = { ...config.server, port: portOf(url) };
      const admin = { port: portOf(adminUrl), token: adminToken };
      writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify({ ...config, server, admin }));
      child.kill('SIGHUP');
    },
    async drain(config) {
      const faults: string[] = [];
      await during(async () => {
        const ending = await current().end();
        if (ending !== 0) faults.push(`gateway ${node} ended with ${ending} after SIGTERM`);
        await start(config);
      });
      return faults;
    },
    kill: (config, withWorkers) =>
      during(async () => {
        const { child } = current();
        const ended = new Promise((resolve) => child.once('exit', resolve));
        const children = childrenOf(child.pid ?? 0);
        const isRunning = child.kill('SIGKILL');
        if (withWorkers) children.forEach(kill);
        if (isRunning) await ended;
        await start(config);
      }),
    killWorker(random) {
      const children = childrenOf(current().child.pid ?? 0);
      const pid = children[Math.floor(random() * children.length)];
      if (pid === undefined) return;
      const nowMs = performance.now();
      broken.push({ node, fromMs: nowMs, toMs: nowMs + afterKillMs });
      kill(pid);
    },
    log: () => readFileSync(logFile, 'utf8'),
  };
}

const portOf = (url: string): number => Number(new URL(url).port);

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** What a process has of the machine. */
export interface Footprint {
  readonly megabytes: number;
  /** Open ones, of any kind. */
  readonly sockets: number;
}

export function footprintOf(pid: number): Footprint {
  const [, resident = '0'] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ');
  const sockets = readdirSync(`/proc/${pid}/fd`).filter((fd) => isSocket(pid, fd)).length;
  return { megabytes: Math.round((Number(resident) * 4_096) / 2 ** 20), sockets };
}

function isSocket(pid: number, fd: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
  } catch {
    return false;
  }
}
