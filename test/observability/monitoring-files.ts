import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { metricNames } from './promql.ts';

export const configFolder = join(import.meta.dirname, '..', '..', 'config');
export const prometheusFolder = join(configFolder, 'prometheus');

interface Position {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly uid: string };
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: Position;
  readonly datasource?: { readonly uid: string };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string; readonly noValue?: string } };
  readonly options?: { readonly yAxis?: { readonly unit?: string } };
  readonly links?: readonly { readonly url: string }[];
  /** The panels of a collapsed row. */
  readonly panels?: readonly Panel[];
  readonly targets?: readonly Target[];
}

interface Dashboard {
  readonly id: number | null;
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr?: string }[] };
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly definition?: string;
      readonly includeAll: boolean;
      readonly allValue?: string;
    }[];
  };
}

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  /** How long the expression must hold before the alert fires, such as `5m`. */
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A file's text and its parsed content. */
interface DashboardFile {
  readonly file: string;
  readonly text: string;
  readonly dashboard: Dashboard;
  /** The panels with queries, those of collapsed rows included; the others are rows. */
  readonly panels: readonly Panel[];
}

export const dashboards: readonly DashboardFile[] = readdirSync(
  join(configFolder, 'grafana', 'dashboards'),
).map((file) => {
  const text = readFileSync(join(configFolder, 'grafana', 'dashboards', file), 'utf8');
  const dashboard = JSON.parse(text) as Dashboard;
  return { file, text, dashboard, panels: allPanels(dashboard).filter(({ type }) => type !== 'row') };
});

/** Every row and panel, those of collapsed rows included. */
export function allPanels({ panels }: Pick<Dashboard, 'panels'>): readonly Panel[] {
  return panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
}

const rules = ['recording-rules.yml', 'alert-rules.yml'].flatMap((file) => {
  const { groups } = readYaml(join(prometheusFolder, file)) as { groups: { rules: Rule[] }[] };
  return groups.flatMap((group) => group.rules);
});

export const alerts = rules.filter(({ alert }) => alert !== undefined);

/** The names of series that Prometheus itself produces: recording rules, scrapes and alerts. */
export const recorded: ReadonlySet<string> = new Set([
  ...rules.flatMap(({ record }) => record ?? []),
  'up',
  'ALERTS',
]);

/** Every query of the dashboards and rules, with its place. */
export const expressions: readonly { readonly place: string; readonly expr: string }[] = [
  ...dashboards.flatMap(({ dashboard }) =>
    dashboard.annotations.list.flatMap(({ name, expr }) =>
      expr === undefined ? [] : [{ place: `${dashboard.title}: annotation ${name}`, expr }],
    ),
  ),
  ...dashboards.flatMap(({ dashboard, panels }) =>
    panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ place: `${dashboard.title}: ${title}`, expr })),
    ),
  ),
  ...rules.map(({ alert, record = '', expr }) => ({ place: alert ?? record, expr })),
];

/** The names that the dashboards and rules require from the gateway. */
export const wantedNames: readonly string[] = [
  ...new Set(expressions.flatMap(({ expr }) => metricNames(expr))),
].filter((name) => !recorded.has(name));

export function readYaml(path: string): unknown {
  return parse(readFileSync(path, 'utf8'), { merge: true });
}
