import type { Outcome } from './consumption.ts';
import type { OnDisconnect } from './routing.ts';

/** By what a request is charged: not at all, by what the upstream counted, or by what we counted. */
export type ChargeBasis = 'nothing' | 'upstream' | 'counted';

/** What is charged for an outcome, by whether text reached the client and whether the upstream told its usage. */
interface SettlementRow {
  /** No text went out. */
  readonly withoutText: { readonly usageKnown: ChargeBasis; readonly usageUnknown: ChargeBasis };
  /** Some text went out. */
  readonly withText: { readonly usageKnown: ChargeBasis; readonly usageUnknown: ChargeBasis };
}

const whole = { usageKnown: 'upstream', usageUnknown: 'counted' } as const;
const nothing = { usageKnown: 'nothing', usageUnknown: 'nothing' } as const;

/** A finished answer is paid for, even an empty one: the upstream worked for it. */
const finished: SettlementRow = { withoutText: whole, withText: whole };

/** An answer that broke off is paid for as far as it reached the client, and not at all before that. */
const brokenOff: SettlementRow = { withoutText: nothing, withText: whole };

/** What is our own fault, or was never sent, costs nothing. */
const unpaid: SettlementRow = { withoutText: nothing, withText: nothing };

/** What ends an answer because its client, or whoever holds the key, wants no more of it. */
const departures = ['client_closed', 'cancelled'] as const satisfies readonly Outcome[];
type Departure = (typeof departures)[number];

/** The settlement table: what is charged when. It drives the settlement, its tests and the README's table. */
export const settlementTable: Readonly<Record<Exclude<Outcome, Departure>, SettlementRow>> = {
  completed: finished,
  incomplete: finished,
  refused: unpaid,
  upstream_failed: brokenOff,
  upstream_truncated: brokenOff,
  first_byte_timeout: brokenOff,
  idle_timeout: brokenOff,
  total_timeout: brokenOff,
  drained: brokenOff,
  lost: unpaid,
  server_error: unpaid,
};

/** Its part for a client that leaves, or cancels: by the upstream's `onDisconnect`. */
export const departureTable: Readonly<Record<OnDisconnect, SettlementRow>> = {
  estimate: brokenOff,
  /** The usage is known more often, because the answer was read on. */
  drain: brokenOff,
  free: unpaid,
};

/** Looks a case up in the table. */
export function chargeBasis(
  outcome: Outcome,
  onDisconnect: OnDisconnect,
  hasText: boolean,
  usageKnown: boolean,
): ChargeBasis {
  const { withText, withoutText } = isDeparture(outcome)
    ? departureTable[onDisconnect]
    : settlementTable[outcome];
  const row = hasText ? withText : withoutText;
  return usageKnown ? row.usageKnown : row.usageUnknown;
}

function isDeparture(outcome: Outcome): outcome is Departure {
  return departures.includes(outcome as Departure);
}
