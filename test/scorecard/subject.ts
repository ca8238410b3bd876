import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { checkLedger } from '../chaos/check-ledger.ts';
import type { Acknowledged } from '../chaos/numbered-client.ts';
import type { ServedTokens } from '../chaos/numbered-upstream.ts';
import { databaseIn, serveConfig, servedModel } from '../chaos/served-process.ts';
import type { ServedProcess } from '../chaos/served-process.ts';
import { requestsInFlight } from './gateway-state.ts';

/** How long a gateway may take until nothing is in flight any more, in milliseconds. */
const settleMs = 60_000;

export interface SubjectOptions {
  /** The name of the section, for the folder. */
  readonly name: string;
  readonly upstreamUrl: string;
  readonly server?: object;
  /** Further sections of the config. */
  readonly more?: object;
  /** The limit of open files of its process. */
  readonly maxOpenFiles?: number;
  /** Options of Node for its process, modules that are loaded before its own code, and variables. */
  readonly nodeOptions?: readonly string[];
  readonly imports?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether an error in its log is a fault: where no upstream fails, and nothing but clients is hostile. */
  readonly isQuiet?: boolean;
}

/** A gateway process that a section attacks, in a folder of its own. */
export interface Subject {
  readonly served: ServedProcess;
  readonly folder: string;
  /** Its config without the token of the admin API, to be changed and written again. */
  readonly config: object;
  /** A key with a balance. */
  readonly key: string;
  /** Everything that it has logged. */
  log(): string;
  /**
   * Waits until nothing is in flight, ends it, and checks its exit code, its log and its ledger, in which each acknowledged
   * answer must be charged as served. Resolves with the faults; the folder is removed.
   */
  finish(acknowledged?: Acknowledged, served?: ReadonlyMap<number, ServedTokens>): Promise<readonly string[]>;
}

/** Starts one. Commits survive a crash of the process, but do not wait for the disk: its speed is not what is tried. */
export async function startSubject(options: SubjectOptions): Promise<Subject> {
  const { name, upstreamUrl, server, more, isQuiet = false, ...process } = options;
  const folder = mkdtempSync(join(tmpdir(), `textgate-${name}-`));
  const logFile = join(folder, 'log');
  const stdout = openSync(logFile, 'w');
  const config = {
    server: { port: 0, drain: '3s', ...server },
    storage: { durability: 'normal' },
    limits: { concurrency: 1_000, requestsPerMinute: 100_000_000 },
    ...servedModel(upstreamUrl),
    ...more,
  };
  const served = await serveConfig({ folder, config, stdout, ...process });
  closeSync(stdout);
  const key = await served.createKey(name, '100000.00');
  const log = (): string => readFileSync(logFile, 'utf8');
  return {
    served,
    folder,
    config,
    key,
    log,
    async finish(acknowledged = new Map(), questions = new Map()) {
      const left = await inFlightAtLast(served);
      const ending = await served.end();
      const lines = log().split('\n').slice(0, -1);
      const broken = lines.filter((line) => !isObject(line));
      const errors = isQuiet ? lines.filter((line) => /"level":"?(?:50|60|error|fatal)"?/.test(line)) : [];
      const books = await checkLedger(databaseIn(folder), acknowledged, questions);
      rmSync(folder, { recursive: true });
      return [
        ...(left === 0 ? [] : [`${left} requests are in flight ${settleMs} ms after the last one`]),
        ...(ending === 0 ? [] : [`the process ended with ${ending}`]),
        ...(broken.length === 0
          ? []
          : [`${broken.length} lines of the log are no JSON objects: ${broken[0]}`]),
        ...errors.map((line) => `the log has an error: ${line.slice(0, 300)}`),
        ...(books.open === 0 ? [] : [`${books.open} records are open after the end`]),
        ...books.faults,
      ];
    },
  };
}

/** The number of requests in progress once it is 0, or after the longest wait; NaN from a process that is gone. */
async function inFlightAtLast(served: ServedProcess): Promise<number> {
  if (served.child.exitCode !== null) return 0;
  const startMs = performance.now();
  for (;;) {
    const left = await requestsInFlight(served).catch(() => NaN);
    if (left === 0 || performance.now() - startMs > settleMs) return left;
    await wait(20);
  }
}

function isObject(line: string): boolean {
  try {
    return typeof JSON.parse(line) === 'object';
  } catch {
    return false;
  }
}
