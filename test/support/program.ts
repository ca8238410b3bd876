import { findProgram } from '../../src/bundle.js';

/** The file of the program that `npm start` runs: a bundle of the sources, built by the first test that needs it. */
export const programFile = await findProgram();
