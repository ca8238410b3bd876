import type { UpstreamLimiters } from '../../domain/ports/upstream-limiters.ts';

/** Limiters as the requests of one config use them, which say by its number to which upstream of a name they go. */
export function limitersOfConfig(limiters: UpstreamLimiters, config: number): UpstreamLimiters {
  return {
    limits: (target) => limiters.limits(target),
    acquire: (request, signal) => limiters.acquire({ ...request, config }, signal),
    tryAcquire: (request) => limiters.tryAcquire({ ...request, config }),
    waiting: (requestId) => limiters.waiting(requestId),
    pausedMs: (target) => limiters.pausedMs(target),
    views: () => limiters.views(),
  };
}
