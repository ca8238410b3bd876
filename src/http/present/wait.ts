import type { RunningRequest } from '../../domain/ports/running-requests.ts';

/** What a request in progress waits for, at which upstreams, its place in line and the expected wait, as far as known. */
export function presentWait({ hasSlot, room }: Pick<RunningRequest, 'hasSlot' | 'room'>) {
  const waitsFor = !hasSlot ? ('slot' as const) : room === null ? null : ('upstream' as const);
  return {
    waits_for: waitsFor,
    waits_at: room?.upstreams ?? null,
    position: room?.position ?? null,
    expected_wait_ms: room === null ? null : Math.round(room.expectedMs),
  };
}
