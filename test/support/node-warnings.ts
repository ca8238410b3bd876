/** Warnings of Node that tests may cause, each with its reason. */
const accepted: readonly { readonly pattern: RegExp; readonly reason: string }[] = [];

/** A warning as Node prints it on standard error, from the process to the end of its first line. */
const printed = /^\(node:\d+\) .*Warning: .*$/gm;

const seen: string[] = [];
let isListening = false;

/** Whether a warning is none of those that are accepted. */
function isUnexpected(warning: string): boolean {
  return !accepted.some(({ pattern }) => pattern.test(warning));
}

/** Begins to note the warnings of this process: deprecated and experimental features in use, leaks of listeners. */
export function noteWarnings(): void {
  seen.length = 0;
  if (isListening) return;
  isListening = true;
  process.on('warning', ({ name, message, stack }) => void seen.push(`${name}: ${message}\n${stack ?? ''}`));
}

/** Throws if Node has warned since the last call. */
export function refuseWarnings(): void {
  const unexpected = seen.splice(0).filter(isUnexpected);
  if (unexpected.length > 0) throw new Error(`Node warned of:\n${unexpected.join('\n')}`);
}

/** The warnings in what a process under test has printed on standard error. */
export function warningsIn(stderr: string): readonly string[] {
  return (stderr.match(printed) ?? []).filter(isUnexpected);
}
