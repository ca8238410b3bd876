#!/usr/bin/env node
import { endOnEarlySignal, isServing } from './cli/early-signals.ts';
import { whyNodeIsTooOld } from './shared/node-version.ts';

const reason = whyNodeIsTooOld(process.version);
if (reason === null) {
  const args = process.argv.slice(2);
  if (isServing(args)) endOnEarlySignal();
  // Imported here, because an older Node fails already while it loads the program's imports.
  const { tuneProcess } = await import('./cli/tune-process.ts');
  tuneProcess();
  const { runProgram } = await import('./cli/program.ts');
  await runProgram(args);
} else {
  console.error(reason);
  process.exitCode = 1;
}
