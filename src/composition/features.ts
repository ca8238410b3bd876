import type { Config } from '../config/schema/schema.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { IdleTokenCounter } from '../domain/ports/tokens.ts';
import type { SettledObserver } from '../pipeline/ports.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

/** What features may use of the process. */
interface FeatureParts {
  readonly tokens: IdleTokenCounter;
  readonly metrics: Pick<Metrics, 'add'>;
  readonly random: () => number;
}

/** Makes a feature once in a process; the returned function makes what a config that has it does with settled requests. */
type Plug = (parts: FeatureParts) => (config: Config) => SettledObserver;

/** Loads the folder of a feature if a config has it; otherwise it is neither loaded nor seen. */
type Feature = (config: Config) => Promise<{ readonly plug: Plug }> | null;

/** The features that few use, each of which can be deleted: its folder, its line here, its section of the config, its tests. */
const features: readonly Feature[] = [
  ({ metering }) => (metering.sample > 0 ? import('../second-meter/second-meter.ts') : null),
];

/** The features of a process. They are loaded when the first config has them, as is OpenTelemetry with a collector. */
export function createFeatures(parts: FeatureParts, report: ReportFault, all = features) {
  const plugged = new Map<Feature, ReturnType<Plug>>();
  let loaded = Promise.resolve();

  const follow = async (feature: Feature, config: Config, settled: SettledObserver[]): Promise<void> => {
    const loading = feature(config);
    if (loading === null) return;
    try {
      const { plug } = await loading;
      const made = plugged.get(feature) ?? plug(parts);
      plugged.set(feature, made);
      settled.push(made(config));
    } catch (error) {
      report('a feature could not be loaded: requests are served without it', error);
    }
  };
  return {
    /** Adds to a list what the features of a config do with settled requests: of each once it is loaded. */
    addObservers(config: Config, settled: SettledObserver[]): void {
      const following = all.map((feature) => follow(feature, config, settled));
      // Without the results: each would hold those of all configs before it.
      loaded = Promise.all([loaded, ...following]).then(() => {});
    },
    /** Resolves when the features of all configs so far are loaded, or have failed. Never rejects. */
    loaded: (): Promise<void> => loaded,
  };
}
