/** The options of `textgate` itself; any other option without a command belongs to `serve`. */
const ownOptions = new Set(['-h', '--help', '-V', '--version']);

/** The signals that end the process. */
const endingSignals = ['SIGTERM', 'SIGINT'] as const;

/** Whether arguments start a gateway: `serve`, which may be left out, also before its options. */
export function isServing([first = 'serve']: readonly string[]): boolean {
  return first === 'serve' || (first.startsWith('-') && !ownOptions.has(first));
}

/**
 * Ends the process with exit code 0 on a signal while there is no gateway yet, so that nothing has to be finished. Called
 * before the program is loaded, which takes a few hundred milliseconds: a supervisor that stops a gateway in that time
 * would count its end by the signal as a crash.
 */
export function endOnEarlySignal(): void {
  for (const signal of endingSignals) process.once(signal, exitAtOnce);
}

/** Leaves the signals to the gateway, which finishes its requests. */
export function stopEndingOnEarlySignal(): void {
  for (const signal of endingSignals) process.off(signal, exitAtOnce);
}

function exitAtOnce(): void {
  process.exit(0);
}
