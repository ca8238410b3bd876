import type { RootFigures } from '../../background/keep-roots.ts';
import type { LedgerFigures } from '../../background/monitor-ledger.ts';
import type { TopGroup, TopKey } from '../../background/watch-top-keys.ts';
import type { UpstreamState } from '../../domain/upstreams/circuit.ts';
import type { LimiterView } from '../../domain/ports/upstream-limiters.ts';
import type { Instruments } from './instruments.ts';
import { showLimiters } from './upstream-limiter-instruments.ts';

const stateValues: Readonly<Record<UpstreamState, number>> = { open: 0, half_open: 1, closed: 2 };

/** What gauges are read from on every scrape. */
export interface MetricSources {
  /** The state of every upstream; one whose models all pause counts as open. */
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
  /** The state of each model at an upstream that was asked for; one that pauses counts as open. */
  readonly upstreamModelStates: () => readonly {
    readonly upstream: string;
    readonly model: string;
    readonly state: UpstreamState;
  }[];
  /** The upstreams with limits. */
  readonly upstreamLimiters: () => readonly LimiterView[];
  /** Each model on offer, with whether at least one of its routes works. */
  readonly modelAvailability: () => readonly (readonly [model: string, isAvailable: boolean])[];
  /** `null` where another process shows those of the shared database. */
  readonly ledgerFigures: () => LedgerFigures | null;
  /** The age of the oldest waiting settlement, in milliseconds; 0 when none waits. */
  readonly settlementLagMs: () => number;
  /** Whether the database takes writes, by the last ones, and its file is sound. */
  readonly isDatabaseUsable: () => boolean;
  /** The size of the write-ahead log of the database, in bytes; `null` where it has none. */
  readonly databaseLogBytes: () => number | null;
  /** The age of the oldest record, in milliseconds; `null` without one, and where another process shows it. */
  readonly oldestRecordAgeMs: () => number | null;
  /** The age of the oldest event that waits for a webhook, in milliseconds; `null` where there is none to show. */
  readonly oldestEventAgeMs: () => number | null;
  /** The newest root over the ledger; `null` before the first one, and where another process shows it. */
  readonly ledgerRoot: () => RootFigures | null;
  /** The keys that spent most today; none where another process shows them. */
  readonly topKeys: () => readonly TopKey[];
  /** The groups that spent most today; none where another process shows them. */
  readonly topGroups: () => readonly TopGroup[];
  /** Log lines lost since the start. */
  readonly logLinesDropped: () => number;
}

/** Sets the gauges to what their sources say now. */
export function readSources(sources: MetricSources, instruments: Instruments): void {
  const { upstreamStates, modelAvailability, ledgerFigures, settlementLagMs, logLinesDropped } = sources;
  const {
    upstreamState,
    upstreamModelState,
    modelAvailable,
    ledgerLag,
    logDropped,
    oldestRecord,
    topKeys,
    topGroups,
  } = instruments;
  upstreamState.reset();
  for (const [upstream, state] of Object.entries(upstreamStates()))
    upstreamState.set({ upstream }, stateValues[state]);
  upstreamModelState.reset();
  for (const { upstream, model, state } of sources.upstreamModelStates())
    upstreamModelState.set({ upstream, model }, stateValues[state]);
  modelAvailable.reset();
  for (const [model, isAvailable] of modelAvailability()) modelAvailable.set({ model }, isAvailable ? 1 : 0);
  showLimiters(sources.upstreamLimiters(), instruments);
  showLedger(ledgerFigures(), instruments);
  showRoot(sources.ledgerRoot(), instruments);
  ledgerLag.set(settlementLagMs() / 1_000);
  instruments.databaseUsable.set(sources.isDatabaseUsable() ? 1 : 0);
  show(sources.databaseLogBytes(), instruments.logBytes);
  showAge(sources.oldestRecordAgeMs(), oldestRecord);
  showAge(sources.oldestEventAgeMs(), instruments.oldestEvent);
  topKeys.reset();
  for (const { keyId, keyName, chargeNanos } of sources.topKeys())
    topKeys.set({ key_id: keyId, key_name: keyName }, Number(chargeNanos));
  topGroups.reset();
  for (const { group, chargeNanos } of sources.topGroups()) topGroups.set({ group }, Number(chargeNanos));
  logDropped.reset();
  logDropped.inc(logLinesDropped());
}

/** Without an age there is no series. */
function showAge(ageMs: number | null, gauge: Instruments['oldestRecord']): void {
  show(ageMs === null ? null : ageMs / 1_000, gauge);
}

/** Without a value there is no series. */
function show(value: number | null, gauge: Instruments['oldestRecord']): void {
  if (value === null) gauge.remove();
  else gauge.set(value);
}

/** Without figures there are no series: NaN would say that an audit has failed, and count in sums. */
function showLedger(
  figures: LedgerFigures | null,
  { holds, imbalance, lowBalance, warnedBudgets }: Instruments,
): void {
  if (figures === null) {
    for (const gauge of [holds, imbalance, lowBalance, warnedBudgets]) gauge.remove();
    return;
  }
  holds.set(figures.openHolds);
  imbalance.set(figures.imbalanceNanos ?? Number.NaN);
  lowBalance.set(figures.lowBalances);
  warnedBudgets.set(figures.warnedBudgets);
}

function showRoot(root: RootFigures | null, { rootNumber, rootAge }: Instruments): void {
  for (const gauge of [rootNumber, rootAge]) gauge.remove();
  if (root === null) return;
  rootNumber.set(root.number);
  rootAge.set(root.ageMs / 1_000);
}
