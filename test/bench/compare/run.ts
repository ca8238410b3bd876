import type { Findings } from './scenario.ts';
import type { Measured } from './stage.ts';

/** One run of a scenario on a subject. */
export interface Cell extends Findings {
  readonly scenario: string;
  readonly subject: string;
  readonly round: number;
  /** Its place in the order of this round. */
  readonly place: number;
}

/** The machine and the programs of a run. */
export interface Surroundings {
  readonly date: string;
  readonly commit: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly system: string;
  readonly node: string;
  readonly nginx: string | null;
}

/** All that a run of the bench found: its raw data. */
export interface BenchRun {
  readonly surroundings: Surroundings;
  readonly isQuick: boolean;
  /** Subjects that could not be started, and scenarios that can't be measured here, with the reason. */
  readonly absent: Readonly<Record<string, string>>;
  readonly cells: readonly Cell[];
}

/** The share of a core from which on the load generator or the simulator may be what is measured. */
const maxOwnShare = 0.9;

/** What makes a run's figures doubtful, in words; empty if nothing does. */
export function doubtsOf({ scenario, subject, round, loads, faults = [] }: Cell): readonly string[] {
  return [...faults, ...loads.flatMap(doubtsOfLoad)].map(
    (doubt) => `${scenario}, ${subject}, round ${round}: ${doubt}`,
  );
}

function doubtsOfLoad({ result, clientShare, simulatorShare }: Measured): readonly string[] {
  return [
    ...Object.entries(result.failures).map(([fault, count]) => `${count} x ${fault}`),
    ...(result.sentAgain > 0
      ? [`${result.sentAgain} x sent again, as a kept connection was closed between two answers`]
      : []),
    ...(clientShare > maxOwnShare ? [`the load generator used ${percent(clientShare)} of a core`] : []),
    ...(simulatorShare > maxOwnShare ? [`the simulator used ${percent(simulatorShare)} of a core`] : []),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
