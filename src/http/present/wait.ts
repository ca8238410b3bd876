import type { RunningRequest } from '../../domain/ports/running-requests.ts';

/** What a request in progress waits for, at which upstreams, its position in the queue and the expected wait, as far as known. */
export function presentWait({
  hasSlot,
  joined,
  permitWait,
}: Pick<RunningRequest, 'hasSlot' | 'joined' | 'permitWait'>) {
  // One that gets the answer of another request has no slot, and needs none.
  const waitsForSlot = !hasSlot && joined === null;
  const waitsFor = waitsForSlot ? ('slot' as const) : permitWait === null ? null : ('upstream' as const);
  return {
    waits_for: waitsFor,
    waits_at: permitWait?.upstreams ?? null,
    position: permitWait?.position ?? null,
    expected_wait_ms: permitWait === null ? null : Math.round(permitWait.expectedMs),
  };
}
