import { whyNodeIsTooOld } from './node-version.ts';

/*
 * An import for its effect: it throws on a Node that is too old. It is the first import of the package's entry, so that
 * its sentence comes before the error of whatever that Node lacks.
 */
const reason = whyNodeIsTooOld(process.version);
// Node prints the stack of an uncaught error; here it would hide the sentence.
if (reason !== null) throw Object.assign(new Error(reason), { stack: reason });
