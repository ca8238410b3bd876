#!/usr/bin/env node
import { whyNodeIsTooOld } from './shared/node-version.ts';

const reason = whyNodeIsTooOld(process.version);
if (reason === null) {
  // Imported here, because an older Node fails already while it loads the program's imports.
  const { runProgram } = await import('./cli/program.ts');
  await runProgram(process.argv.slice(2));
} else {
  console.error(reason);
  process.exitCode = 1;
}
