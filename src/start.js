#!/usr/bin/env node
// @ts-check
import * as modules from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findProgram } from './bundle.js';
import { keepBundle } from './kept-bundles.js';

/**
 * Starts textgate in a checkout. JavaScript, as what it imports: for TypeScript, Node loads a compiler, which takes longer than
 * all of a short command.
 */

const program = await findProgram();
if (program.endsWith('.js')) {
  keepBundle(dirname(program));
  // Compiled code goes with the bundle whose code it is, unless the environment names another folder; an older Node, which the
  // program refuses in words, has no such functions.
  if (modules.getCompileCacheDir?.() === undefined) {
    const compiled = join(dirname(program), 'compiled');
    modules.enableCompileCache?.(compiled);
    // Threads and workers enable theirs by this variable alone.
    if (modules.getCompileCacheDir?.() !== undefined) process.env['NODE_COMPILE_CACHE'] = compiled;
  }
}
// Workers are started by this name: they must be of the same version, whatever becomes of the sources.
process.argv[1] = program;
await import(pathToFileURL(program).href);
