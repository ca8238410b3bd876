import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the event loop is looked at, in milliseconds: it counts as late only beyond that. */
const resolutionMs = 20;

const nanosPerMs = 1e6;

/** Watches how late the event loop of this process is, and its memory. */
export function watchProcessLoad() {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  return {
    /** The longest delay since the last call, in milliseconds, and the resident memory now, in bytes. */
    read() {
      const eventLoopDelayMs = Math.max(0, Math.round(delays.max / nanosPerMs) - resolutionMs);
      delays.reset();
      return { eventLoopDelayMs, memoryBytes: process.memoryUsage.rss() };
    },
    stop: () => void delays.disable(),
  };
}
