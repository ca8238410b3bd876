import { Registry } from 'prom-client';
import { meterInstruments } from '../../src/second-meter/instruments.ts';
import { createInstruments } from '../../src/telemetry/metrics/instruments.ts';
import { constructorsFor } from '../../src/telemetry/metrics/series.ts';

/** What a registered metric says of itself. */
interface RegisteredMetric {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** A metric as the documentation lists it. */
interface ListedMetric extends RegisteredMetric {
  readonly type: string;
}

/** Every metric of the service, in the order of its registration; those of features that few use stand behind the others. */
export async function listMetrics(): Promise<readonly ListedMetric[]> {
  const registry = new Registry();
  createInstruments(registry, () => null);
  meterInstruments(constructorsFor(registry), { figures: () => [] });
  const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]));
  const registered = registry.getMetricsAsArray() as unknown as readonly RegisteredMetric[];
  return registered.map(({ name, help, labelNames }) => ({
    name,
    help,
    labelNames,
    type: types.get(name) ?? '',
  }));
}

/** The documentation's table of metrics. */
export async function writeMetricsTable(): Promise<string> {
  const rows = (await listMetrics()).map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(' ') || '–';
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
  });
  return ['| name | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n');
}
