import type { RootFigures } from '../../background/keep-roots.ts';
import type { LedgerFigures } from '../../background/monitor-ledger.ts';
import type { TopGroup, TopKey } from '../../background/watch-top-keys.ts';
import type { UpstreamState } from '../../domain/upstreams/circuit.ts';
import type { LimiterView } from '../../domain/ports/upstream-limiters.ts';
import type { Combination, Constructors, ReadSeries } from './series.ts';

/** What figures are read from at every scrape: `instruments.ts` says what each is, beside how it is read. */
export interface MetricSources {
  /** One whose models all pause counts as open. */
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
  /** Each model at an upstream that was asked for; one that pauses counts as open. */
  readonly upstreamModelStates: () => readonly {
    readonly upstream: string;
    readonly model: string;
    readonly state: UpstreamState;
  }[];
  /** Of the upstreams with limits. */
  readonly upstreamLimiters: () => readonly LimiterView[];
  /** Each model on offer. */
  readonly modelAvailability: () => readonly (readonly [model: string, isAvailable: boolean])[];
  /** `null` where another process shows those of the shared database. */
  readonly ledgerFigures: () => LedgerFigures | null;
  readonly settlementLagMs: () => number;
  readonly isDatabaseUsable: () => boolean;
  /** `null` where the database has no log of its own. */
  readonly databaseLogBytes: () => number | null;
  /** `null` without a record, and where another process shows it. */
  readonly oldestRecordAgeMs: () => number | null;
  /** `null` where there is none to show. */
  readonly oldestEventAgeMs: () => number | null;
  /** `null` before the first one, and where another process shows it. */
  readonly ledgerRoot: () => RootFigures | null;
  /** None where another process shows them. */
  readonly topKeys: () => readonly TopKey[];
  /** None where another process shows them. */
  readonly topGroups: () => readonly TopGroup[];
  /** Since the start. */
  readonly logLinesDropped: () => number;
  /** Of requests that clients have named. */
  readonly keptAnswerBytes: () => number;
}

/** What makes metrics of figures that are read at a scrape. */
export type Figures = ReturnType<typeof figuresFor>;

/** Constructors of metrics that are read from sources at a scrape. Without sources they have no series. */
export function figuresFor(
  { collectedGauge, collectedCounter }: Constructors,
  sources: () => MetricSources | null,
) {
  const readOne = (read: (sources: MetricSources) => number | null) => (): readonly ReadSeries<never>[] => {
    const now = sources();
    const value = now === null ? null : read(now);
    return value === null ? [] : [{ labels: {}, value }];
  };
  return {
    /** A gauge with one series; with none while what is read is `null`. */
    figure: (
      name: string,
      help: string,
      combination: Combination,
      read: (sources: MetricSources) => number | null,
    ): void => collectedGauge([], name, help, combination, readOne(read)),
    /** A gauge with a series for each thing of which there is a figure. */
    figuresBy: <const Names extends readonly string[]>(
      labelNames: Names,
      name: string,
      help: string,
      combination: Combination,
      read: (sources: MetricSources) => Iterable<ReadSeries<Names[number]>>,
    ): void =>
      collectedGauge(labelNames, name, help, combination, () => {
        const now = sources();
        return now === null ? [] : read(now);
      }),
    /** A counter of what another part counts. */
    counted: (name: string, help: string, read: (sources: MetricSources) => number): void =>
      collectedCounter(name, help, readOne(read)),
  };
}

/** Milliseconds in seconds; `null` for no time. */
export function inSeconds(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : ms / 1_000;
}
