#!/usr/bin/env node
// @ts-check
import { pathToFileURL } from 'node:url';
import { findProgram } from './bundle.js';

/**
 * Starts textgate in a checkout. JavaScript, as what it imports: for TypeScript, Node loads a compiler, which takes longer than
 * all of a short command.
 */

const program = await findProgram();
// Workers are started by this name: they must be of the same version, whatever becomes of the sources.
process.argv[1] = program;
await import(pathToFileURL(program).href);
