import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { holdStreams } from './compare/hold-streams.ts';
import { help, readOptions } from './compare/options.ts';
import type { Options } from './compare/options.ts';
import { canMeasure } from './compare/process-usage.ts';
import { chooseScenarios, chooseSubjects, runRounds } from './compare/rounds.ts';
import { doubtsOf } from './compare/run.ts';
import type { BenchRun } from './compare/run.ts';
import { describeSurroundings } from './compare/surroundings.ts';
import { publish, refusalToPublish } from './report/publish.ts';
import { writeReport } from './report/write-report.ts';
import { ownCheckout } from './subjects/textgate.ts';

/**
 * Measures the gateway beside nginx, a naive rewriter, Portkey and a direct connection, in interleaved rounds that start
 * them anew.
 * `npm run bench -- --help`; docs/contributors/performance.md has the method.
 */

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(options: Options): Promise<void> {
  if (!canMeasure) throw new Error('CPU and memory are read from /proc, which only Linux has');
  if (options.streams !== null) return holdStreams(options.streams, options, print);
  const runs = options.from.map((path) => JSON.parse(readFileSync(path, 'utf8')) as BenchRun);
  if (runs.length === 0) {
    const refusal = options.publishes ? refusalToPublish([describeSurroundings().commit]) : null;
    if (refusal !== null) throw new Error(refusal);
    const run = await runRounds(options, print);
    const file = options.out ?? join(ownCheckout, 'bench-results', `${run.surroundings.date}.json`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(run)}\n`);
    print(`raw data: ${file}`);
    runs.push(run);
  }
  print(writeReport(runs));
  if (options.publishes) publish(runs);
  const doubts = runs.flatMap(({ cells }) => cells).flatMap(doubtsOf);
  if (doubts.length > 0) print(`doubtful:\n  ${doubts.join('\n  ')}`);
}

// Without this, the subjects would outlive a bench that is ended by a signal.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const options = optionsOrExit();
try {
  if (options === null) print(help);
  else await main(options);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}

/** What the command line asks for; ends the process with code 2 and a word if that is wrong. */
function optionsOrExit(): Options | null {
  try {
    const read = readOptions(process.argv.slice(2));
    if (read !== null) for (const check of [chooseScenarios, chooseSubjects]) check(read);
    return read;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${help}`);
    process.exit(2);
  }
}
