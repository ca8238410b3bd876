// Loaded before the gateway's own code, with `--expose-gc`. SIGUSR2 collects garbage, as V8 does when memory is needed next;
// SIGPWR gives back all that V8 does not use, too: the pages that it keeps for what comes next.
process.on('SIGUSR2', () => {
  globalThis.gc?.();
});
process.on('SIGPWR', () => {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
});
