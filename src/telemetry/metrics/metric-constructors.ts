import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { Distribution, Level, Tally } from './cells.ts';
import { registerDistributions, registerNumbers } from './register-series.ts';
import { Series } from './series.ts';

/** What makes the metrics of a registry. */
export type Constructors = ReturnType<typeof constructorsFor>;

/** One value for each of these labels, in their order. */
type ValuesOf<Names extends readonly string[]> = { readonly [Index in keyof Names]: string };

/** The lines of a histogram's series beside one for each bound: the last bucket, the sum and the count. */
const linesBesideBounds = 3;

/**
 * Constructors of metrics. Those with labels yield a function from label values, in declared order, to the cell that
 * requests change: its figures are plain numbers, which the registry reads at a scrape.
 */
export function constructorsFor(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  return {
    counter,
    gauge,
    counterBy: <const Names extends readonly string[]>(labelNames: Names, name: string, help: string) => {
      const series = new Series(labelNames, () => new Tally());
      registerNumbers(registry, 'counter', { name, help }, series);
      return Object.assign((...values: ValuesOf<Names>) => series.at(values), { series });
    },
    gaugeBy: <const Names extends readonly string[]>(labelNames: Names, name: string, help: string) => {
      const series = new Series(labelNames, () => new Level());
      registerNumbers(registry, 'gauge', { name, help }, series);
      return (...values: ValuesOf<Names>) => series.at(values);
    },
    histogramBy: <const Names extends readonly string[]>(
      labelNames: Names,
      name: string,
      help: string,
      bounds: readonly number[],
    ) => {
      const series = new Series(
        labelNames,
        () => new Distribution(bounds),
        bounds.length + linesBesideBounds,
      );
      registerDistributions(registry, { name, help }, bounds, series);
      return (...values: ValuesOf<Names>) => series.at(values);
    },
  };
}
