import { Load } from '../client/load.ts';
import type { AllOpen, LoadOrder, LoadResult } from '../client/order.ts';
import { allowedOpenFiles } from '../subjects/processes.ts';
import type { RunningSubject } from '../subjects/subject.ts';
import { warmUp } from './fresh-scenarios.ts';
import { demoStreams, streams } from './orders.ts';
import type { Options } from './options.ts';
import { chooseSubjects } from './rounds.ts';
import { Stage } from './stage.ts';
import type { Measured } from './stage.ts';

/** Open files that a process needs besides those of its streams: a proxied one takes two, one of the demo upstream one. */
const otherFiles = 128;

/** The most streams of the demo upstream: each sends 25 events a second, so that more of them would be all that is measured. */
const maxDemoStreams = 500;

/** How many streams are opened in a second. */
const startsPerSecond = 400;

/** How long all of them are open, in milliseconds: less than a stream of the demo upstream takes. */
const steadyMs = 4_000;
const demoStreamMs = 5_000;

/** When all is cut off, in milliseconds. */
const deadlineMs = 180_000;

/** The time between two events of a proxied stream, in milliseconds. */
const intervalMs = 4_000;

/** How many streams are open at once through the subject, and how many inside it. */
interface Parts {
  readonly proxied: number;
  readonly demo: number;
  /** The limit of open files of every process. */
  readonly openFiles: number;
}

/** Opens so many streams at once on each subject, and prints memory, CPU and what was lost. */
export async function holdStreams(
  count: number,
  options: Options,
  print: (line: string) => void,
): Promise<void> {
  const parts = partsOf(count, allowedOpenFiles(2 * count + otherFiles));
  const stage = await Stage.open(parts.openFiles);
  const chosen = options.subjects.length === 0 ? { ...options, subjects: ['textgate'] } : options;
  for (const subject of chooseSubjects(chosen)) {
    if (parts.demo > 0 && !subject.isTextgate) {
      print(`${subject.name} is left out: ${count} streams take more than ${parts.openFiles} files`);
      continue;
    }
    const running = await stage.start(subject);
    const { complete, lines } = await hold(stage, running, parts);
    print(`${subject.name}: ${complete} of ${count} streams complete`);
    for (const line of lines) print(`  ${line}`);
    await running.close();
    if (complete < count) process.exitCode = 1;
  }
  stage.close();
}

/** As many streams are proxied as the limit of open files allows; the others come from the demo upstream. */
function partsOf(count: number, openFiles: number): Parts {
  const proxied = Math.min(count, openFiles - otherFiles - count);
  const demo = count - proxied;
  if (demo > maxDemoStreams)
    throw new Error(
      `${count} streams take ${2 * count + otherFiles} open files, and only ${openFiles} are allowed (ulimit -n)`,
    );
  return { proxied, demo, openFiles };
}

/** What was found, in words, and how many streams came to their end. */
interface Held {
  readonly complete: number;
  readonly lines: readonly string[];
}

async function hold(stage: Stage, running: RunningSubject, parts: Parts): Promise<Held> {
  const { proxied, demo } = parts;
  await warmUp(stage, running);
  const settings = { textEvents: 2, held: 1, intervalMs };
  const sending = { requests: proxied, atOnce: proxied, startsPerSecond, settings };
  const demoLoad = new DemoLoad({ ...demoStreams(running, demo), ports: [running.port] });
  const order = { ...streams(running, sending), deadlineMs };
  const measured = await stage.measure(running, order, steadyMs, () => demoLoad.open());
  const results = [measured.result, ...(await demoLoad.results())];
  const lost = results.flatMap(({ failures }) =>
    Object.entries(failures).map(([fault, times]) => `${times} x ${fault}`),
  );
  return {
    complete: results.reduce((sum, { answers }) => sum + answers, 0),
    lines: [
      `lost: ${lost.join(', ') || 'none'}`,
      ...describeParts(parts),
      ...describeUsage(measured, demoLoad.openedMs),
    ],
  };
}

/** Streams of the demo upstream, which are opened when all others are open. */
class DemoLoad {
  /** How long it took until all of them had text, in milliseconds. */
  openedMs = 0;
  readonly #order: LoadOrder;
  readonly #results: Promise<LoadResult>[] = [];

  constructor(order: LoadOrder) {
    this.#order = order;
  }

  /** Resolves when all of them are open. */
  async open(): Promise<void> {
    if (this.#order.requests === 0) return;
    const opened = Promise.withResolvers<AllOpen | LoadResult>();
    const ended = Promise.withResolvers<LoadResult>();
    void new Load(this.#order, (report) => {
      opened.resolve(report);
      if (report.kind === 'result') ended.resolve(report);
    });
    this.#results.push(ended.promise);
    this.openedMs = (await opened.promise).elapsedMs;
  }

  /** Resolves when they have ended, with nothing if there were none. */
  results(): Promise<readonly LoadResult[]> {
    return Promise.all(this.#results);
  }
}

function describeParts({ proxied, demo, openFiles }: Parts): readonly string[] {
  if (demo === 0) return [];
  return [
    `${proxied} of them proxied, with two files each; ${demo} from the demo upstream inside the process, with one: ` +
      `${openFiles} files may be open`,
  ];
}

function describeUsage(
  { result, steady, rssBefore, rssMax }: Measured,
  demoOpenedMs: number,
): readonly string[] {
  const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
  const { p50, p99 } = result.firstText;
  const wereAllOpen = steady !== null && demoOpenedMs + steadyMs < demoStreamMs;
  return [
    `first text after ${p50.toFixed(1)} ms (p50), ${p99.toFixed(1)} ms (p99)`,
    `memory: ${megabytes(rssBefore)} before, ${megabytes(rssMax)} at most`,
    wereAllOpen
      ? `all open at once for ${steadyMs / 1_000} s: ${megabytes(steady.rssBytes)}, ${(steady.cpuShare * 100).toFixed(0)} % ` +
        `of a core with ${((result.answers * 1_000) / intervalMs).toFixed(0)} events a second through it`
      : 'they were never all open at once',
  ];
}
