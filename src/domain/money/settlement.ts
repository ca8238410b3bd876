import type { Outcome } from './consumption.ts';
import type { OnDisconnect } from '../routing.ts';

/** The basis of a charge: nothing, the upstream's count, or our own count. */
export type ChargeBasis = 'nothing' | 'upstream' | 'counted';

/**
 * The progress of an answer when it ended:
 * - `none`: nothing had arrived;
 * - `awaited`: the upstream had a request for a whole answer, and how much of it was generated can't be seen;
 * - `unsent`: thoughts had arrived, or text of a whole answer: generated, but not sent to the client;
 * - `sent`: text was streamed to the client.
 */
export type Progress = 'none' | 'awaited' | 'unsent' | 'sent';

/** Whether an outcome is charged, by the progress of the answer. */
type SettlementRow = Readonly<Record<Progress, 'paid' | 'nothing'>>;

/** A finished answer is charged, even an empty one: the upstream generated it. */
const finished: SettlementRow = { none: 'paid', awaited: 'paid', unsent: 'paid', sent: 'paid' };

/** An answer that broke off is charged once some of it has reached the client, and not before. */
const brokenOff: SettlementRow = { none: 'nothing', awaited: 'nothing', unsent: 'nothing', sent: 'paid' };

/** A client that disconnects is charged for the upstream's work; for an awaited whole answer, at least the input. */
const brokenOffByClient: SettlementRow = { none: 'nothing', awaited: 'paid', unsent: 'paid', sent: 'paid' };

/** A failure of this service, or a request that was never sent upstream, is not charged. */
const unpaid: SettlementRow = { none: 'nothing', awaited: 'nothing', unsent: 'nothing', sent: 'nothing' };

/** The outcomes of an answer that its client, or the holder of its key, stopped. */
const disconnects = ['client_closed', 'cancelled'] as const satisfies readonly Outcome[];
type Disconnect = (typeof disconnects)[number];

/** The settlement table: what is charged when. It drives the settlement, its tests and the table in docs/operators/money.md. */
export const settlementTable: Readonly<Record<Exclude<Outcome, Disconnect>, SettlementRow>> = {
  completed: finished,
  incomplete: finished,
  refused: unpaid,
  upstream_failed: brokenOff,
  upstream_truncated: brokenOff,
  first_byte_timeout: brokenOff,
  idle_timeout: brokenOff,
  total_timeout: brokenOff,
  drained: brokenOff,
  crashed: brokenOff,
  lost: unpaid,
  server_error: unpaid,
};

/** The settlement table for a client that disconnects or cancels, by the upstream's `onDisconnect`. */
export const disconnectTable: Readonly<Record<OnDisconnect, SettlementRow>> = {
  estimate: brokenOffByClient,
  /** The usage is known more often, because the answer was read on. */
  drain: brokenOffByClient,
  free: unpaid,
};

/** Looks an outcome up in the table. What is charged is charged by the upstream's count, or else by our own. */
export function chargeBasis(
  outcome: Outcome,
  onDisconnect: OnDisconnect,
  progress: Progress,
  usageKnown: boolean,
): ChargeBasis {
  const row = isDisconnect(outcome) ? disconnectTable[onDisconnect] : settlementTable[outcome];
  if (row[progress] === 'nothing') return 'nothing';
  return usageKnown ? 'upstream' : 'counted';
}

/** The outcomes of a passed-on answer that the upstream or this service spoiled: not charged. */
const spoiledPassages: ReadonlySet<Outcome> = new Set([
  'upstream_failed',
  'upstream_truncated',
  'first_byte_timeout',
  'idle_timeout',
  'lost',
  'server_error',
]);

/**
 * Whether a passthrough request is charged: yes, once the head of a 2xx or 3xx with this `status` was sent. Otherwise a
 * client that reads slowly until the deadline would get the answer for free.
 */
export function isPassagePaid(outcome: Outcome, status: number | null): boolean {
  return status !== null && status < 400 && !spoiledPassages.has(outcome);
}

/** Whether a request is charged by the table; `null` where that depends on facts that no record keeps. */
export function isPaid(outcome: Outcome, wasSent: boolean): boolean | null {
  const rows = isDisconnect(outcome) ? Object.values(disconnectTable) : [settlementTable[outcome]];
  const cells = rows.flatMap((row) => (wasSent ? [row.sent] : [row.none, row.awaited, row.unsent]));
  if (cells.every((cell) => cell === 'paid')) return true;
  return cells.every((cell) => cell === 'nothing') ? false : null;
}

function isDisconnect(outcome: Outcome): outcome is Disconnect {
  return disconnects.includes(outcome as Disconnect);
}
