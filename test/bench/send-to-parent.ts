/**
 * Sends a message to the process that started this one. It may just have ended, which `disconnect` tells: without a callback
 * the failed write would be an uncaught error, printed after the last line of the bench.
 */
export function sendToParent(message: unknown): void {
  process.send?.(message, undefined, {}, () => {});
}
