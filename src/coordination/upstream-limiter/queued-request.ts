import type { Ticket } from '../../domain/upstream-limiter/key-queue.ts';
import type { AcquireResult, PermitRequest, PermitWait } from '../../domain/ports/upstream-limiters.ts';
import { refusalBy } from './requested-limiters.ts';
import type { RequestedLimiter } from './requested-limiters.ts';

/** A queue that it has joined. */
interface JoinedQueue extends RequestedLimiter {
  readonly ticket: Ticket<QueuedRequest>;
}

/** A request that waits in the queues of some upstreams. */
export interface QueuedRequest {
  readonly request: PermitRequest;
  readonly sinceMs: number;
  readonly queues: readonly JoinedQueue[];
  /** Ends the wait. It must be in no queue by then. */
  readonly end: (result: AcquireResult) => void;
}

/** Joins the queues of some limiters. */
export function joinQueues(
  request: PermitRequest,
  requested: readonly RequestedLimiter[],
  nowMs: number,
  end: (result: AcquireResult) => void,
): QueuedRequest {
  const queues: JoinedQueue[] = [];
  const queued = { request, sinceMs: nowMs, queues, end };
  const { keyId, weight, tokens } = request;
  for (const { limiter, models } of requested) {
    const ticket = limiter.queue.join(keyId, weight, limiter.costOf(tokens), queued, models);
    queues.push({ limiter, models, ticket });
  }
  return queued;
}

/** The shortest wait that is expected in any of its queues when it joins them, in milliseconds. */
export function expectedAtFirst({ queues, request }: QueuedRequest, nowMs: number): number {
  const waits = queues.map(({ limiter, models, ticket }) =>
    limiter.expectedMs(
      models,
      limiter.queue.loadAhead(ticket, limiter.heldAt(nowMs).held),
      request.tokens,
      nowMs,
    ),
  );
  return Math.min(...waits);
}

/** What it has to expect now, where many requests are shown: the first one of a queue counts for all others, too. */
export function outlook({ queues, request }: QueuedRequest, nowMs: number): PermitWait {
  let before = Number.POSITIVE_INFINITY;
  let expectedMs = Number.POSITIVE_INFINITY;
  for (const { limiter, models, ticket } of queues) {
    const ahead = limiter.queue.loadsAhead((atMs) => limiter.heldAt(atMs), nowMs).get(ticket);
    if (ahead === undefined) continue;
    before = Math.min(before, ahead.all.requests);
    expectedMs = Math.min(expectedMs, limiter.expectedMs(models, ahead, request.tokens, nowMs));
  }
  return { position: 1 + before, expectedMs, upstreams: queues.map(({ limiter }) => limiter.upstream) };
}

/** The refusal of a request that waited as long as it may. */
export function timedOut({ queues, request, sinceMs }: QueuedRequest, nowMs: number): AcquireResult {
  return { kind: 'timed_out', waitedMs: nowMs - sinceMs, ...refusalBy(queues, request, nowMs) };
}
