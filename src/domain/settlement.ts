import type { Outcome } from './consumption.ts';
import type { OnDisconnect } from './routing.ts';

/** By what a request is charged: not at all, by what the upstream counted, or by what we counted. */
export type ChargeBasis = 'nothing' | 'upstream' | 'counted';

/**
 * How far an answer had come:
 * - `none`: nothing of it had come;
 * - `awaited`: the upstream was sent a request for a whole answer, and nothing shows how much of it was written;
 * - `unsent`: thoughts had come, or text of a whole answer: the upstream's work, none of which went out;
 * - `sent`: text of it was streamed to the client.
 */
export type Progress = 'none' | 'awaited' | 'unsent' | 'sent';

/** What is paid for an outcome, by how far the answer had come: what is known to have been used, or nothing. */
type SettlementRow = Readonly<Record<Progress, 'paid' | 'nothing'>>;

/** A finished answer is paid for, even an empty one: the upstream worked for it. */
const finished: SettlementRow = { none: 'paid', awaited: 'paid', unsent: 'paid', sent: 'paid' };

/** An answer that broke off is paid for as far as it reached the client, and not at all before that. */
const brokenOff: SettlementRow = { none: 'nothing', awaited: 'nothing', unsent: 'nothing', sent: 'paid' };

/** A client that leaves pays for what it had the upstream do: of a whole answer that was awaited, the question. */
const brokenOffByClient: SettlementRow = { none: 'nothing', awaited: 'paid', unsent: 'paid', sent: 'paid' };

/** What is our own fault, or was never sent, costs nothing. */
const unpaid: SettlementRow = { none: 'nothing', awaited: 'nothing', unsent: 'nothing', sent: 'nothing' };

/** What ends an answer because its client, or the holder of its key, wants no more of it. */
const disconnects = ['client_closed', 'cancelled'] as const satisfies readonly Outcome[];
type Disconnect = (typeof disconnects)[number];

/** The settlement table: what is charged when. It drives the settlement, its tests and the table in docs/money.md. */
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

/** Its part for a client that leaves, or cancels: by the upstream's `onDisconnect`. */
export const disconnectTable: Readonly<Record<OnDisconnect, SettlementRow>> = {
  estimate: brokenOffByClient,
  /** The usage is known more often, because the answer was read on. */
  drain: brokenOffByClient,
  free: unpaid,
};

/** Looks a case up in the table. What is paid for is charged by the upstream's count, or else by ours. */
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

/** What ends a passed-on answer by the upstream's fault, or by ours: such an answer costs nothing. */
const spoiledPassages: ReadonlySet<Outcome> = new Set([
  'upstream_failed',
  'upstream_truncated',
  'first_byte_timeout',
  'idle_timeout',
  'lost',
  'server_error',
]);

/**
 * Whether a request that is passed on pays its price: once the head of a 2xx or 3xx went out, of which `status` is the
 * status. A client that reads slowly until time is up would have it for nothing otherwise.
 */
export function isPassagePaid(outcome: Outcome, status: number | null): boolean {
  return status !== null && status < 400 && !spoiledPassages.has(outcome);
}

/** Whether the table says that such a request is paid for; `null` where that depends on what no record says. */
export function isPaid(outcome: Outcome, wasSent: boolean): boolean | null {
  const rows = isDisconnect(outcome) ? Object.values(disconnectTable) : [settlementTable[outcome]];
  const cells = rows.flatMap((row) => (wasSent ? [row.sent] : [row.none, row.awaited, row.unsent]));
  if (cells.every((cell) => cell === 'paid')) return true;
  return cells.every((cell) => cell === 'nothing') ? false : null;
}

function isDisconnect(outcome: Outcome): outcome is Disconnect {
  return disconnects.includes(outcome as Disconnect);
}
