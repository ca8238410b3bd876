import { appendFileSync } from 'node:fs';

/**
 * Loaded into a gateway's process before its own code (`node --import`, with `--expose-gc`): SIGUSR2 collects all garbage and
 * appends a line with what is left to the file in `MEMORY_PROBE_FILE`.
 */
process.on('SIGUSR2', () => {
  global.gc?.();
  global.gc?.();
  const { heapUsed, rss, external } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo();
  const timers = handles.filter((name) => name === 'Timeout').length;
  const line = { heapUsed, rss, external, handles: handles.length - timers, timers };
  appendFileSync(process.env['MEMORY_PROBE_FILE'] ?? '', `${JSON.stringify(line)}\n`);
});
