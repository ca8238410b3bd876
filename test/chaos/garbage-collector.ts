// Loaded before the gateway's own code, with `--expose-gc`: SIGUSR2 collects garbage, as V8 does when memory is needed next.
process.on('SIGUSR2', () => {
  globalThis.gc?.();
});
