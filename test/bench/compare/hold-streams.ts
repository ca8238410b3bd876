import { warmUp } from './fresh-scenarios.ts';
import { streams } from './orders.ts';
import type { Options } from './options.ts';
import { chooseSubjects } from './rounds.ts';
import { Stage } from './stage.ts';

/** Open files that a process needs besides those of its streams, which take two each. */
const otherFiles = 512;

/** How many streams are opened in a second, and how long all of them are open, in milliseconds. */
const startsPerSecond = 500;
const steadyMs = 10_000;

/** When all is cut off, in milliseconds. */
const deadlineMs = 180_000;

/** The time between two events of a stream, in milliseconds. */
const intervalMs = 1_000;

/** Opens so many streams at once on each subject, and prints memory, CPU and what was lost. */
export async function holdStreams(
  count: number,
  options: Options,
  print: (line: string) => void,
): Promise<void> {
  const stage = await Stage.open(2 * count + otherFiles);
  const chosen = options.subjects.length === 0 ? { ...options, subjects: ['textgate'] } : options;
  for (const subject of chooseSubjects(chosen)) {
    const running = await stage.start(subject);
    await warmUp(stage, running);
    const sending = {
      requests: count,
      atOnce: count,
      startsPerSecond,
      settings: { textEvents: 2, held: 1, intervalMs },
    };
    const { result, steady, rssBefore, rssMax } = await stage.measure(
      running,
      { ...streams(running, sending), deadlineMs },
      steadyMs,
    );
    const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
    const lost = Object.entries(result.failures).map(([fault, times]) => `${times} x ${fault}`);
    print(
      `${subject.name}: ${result.answers} of ${count} streams complete; lost: ${lost.join(', ') || 'none'}`,
    );
    print(
      `  first text after ${result.firstText.p50.toFixed(1)} ms (p50), ${result.firstText.p99.toFixed(1)} ms (p99)`,
    );
    print(`  memory: ${megabytes(rssBefore)} before, ${megabytes(rssMax)} at most`);
    if (steady === null) print('  they were never all open at once');
    else
      print(
        `  all open at once: ${megabytes(steady.rssBytes)}, ${(steady.cpuShare * 100).toFixed(0)} % of a core ` +
          `with ${((count * 1_000) / intervalMs).toFixed(0)} events a second`,
      );
    await running.close();
    if (result.answers < count) process.exitCode = 1;
  }
  stage.close();
}
