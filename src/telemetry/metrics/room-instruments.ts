import type { RoomSummary } from '../../domain/exchange-summary.ts';
import type { RoomView } from '../../domain/ports/rooms.ts';
import type { Constructors } from './metric-constructors.ts';

/** Bucket bounds for waits for an upstream, in seconds; the first one has those that did not wait. */
const waitBuckets = [0, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600];

/** Why a request got no place at an upstream with limits. */
const roomRefusals = ['full', 'timed_out'] as const;

/** The metrics of upstreams with limits. */
export type RoomInstruments = ReturnType<typeof roomInstruments>;

/** How upstreams with limits are used, and who waits for them. */
export function roomInstruments({ counterBy, gauge, histogramBy }: Constructors) {
  const labels = ['upstream'];
  return {
    roomWaits: histogramBy(
      ['upstream'],
      'textgate_upstream_wait_seconds',
      'How long requests waited for an upstream with limits; 0 for those that did not wait.',
      waitBuckets,
    ),
    roomRefusals: counterBy(
      ['upstream', 'reason'],
      'textgate_upstream_queue_refusals_total',
      'Requests refused because no more may wait for an upstream with limits (full), or because they waited too long (timed_out); one for which several were possible counts at each.',
    ),
    roomInFlight: gauge(
      'textgate_upstream_in_flight',
      'Requests in progress at an upstream with limits.',
      labels,
    ),
    roomLimit: gauge(
      'textgate_upstream_in_flight_limit',
      'The most requests that an upstream may have in progress, by its config or as learned from its answers; absent without such a limit.',
      labels,
    ),
    roomWaiting: gauge(
      'textgate_upstream_waiting',
      'Requests that wait for an upstream with limits; one that waits for several counts at each.',
      labels,
    ),
  };
}

/** Counts what became of an ended request's search for places. */
export function countRoom(room: RoomSummary | null, instruments: RoomInstruments): void {
  if (room === null) return;
  const { refusal, upstream, waitMs } = room;
  if (refusal !== null)
    for (const refusing of refusal.upstreams) instruments.roomRefusals(refusing, refusal.kind).inc();
  else if (upstream !== null) instruments.roomWaits(upstream).observe(waitMs / 1_000);
}

/** Sets the gauges of the upstreams with limits. An alert on their refusals needs the series before the first one. */
export function showRooms(
  views: readonly RoomView[],
  { roomInFlight, roomLimit, roomWaiting, roomRefusals: refusals }: RoomInstruments,
): void {
  for (const gauge of [roomInFlight, roomLimit, roomWaiting]) gauge.reset();
  for (const { upstream, inFlight, maxInFlight, waiting } of views) {
    roomInFlight.set({ upstream }, inFlight);
    roomWaiting.set({ upstream }, waiting);
    for (const reason of roomRefusals) refusals(upstream, reason).inc(0);
    if (maxInFlight !== null) roomLimit.set({ upstream }, maxInFlight);
  }
}
