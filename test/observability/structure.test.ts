import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { maxKeptBytes } from '../../src/pipeline/claims/kept-answers.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { readExposition } from './exposition.ts';
import type { Exposition } from './exposition.ts';
import {
  allPanels,
  alerts,
  dashboards,
  expressions,
  prometheusFolder,
  readYaml,
  recorded,
  wantedNames,
} from './monitoring-files.ts';
import type { Panel } from './monitoring-files.ts';
import { matchers, metricNames } from './promql.ts';

/** The number of columns of a dashboard. */
const gridColumns = 24;

describe('the names in the queries of dashboards and rules', () => {
  let gateway: TestGateway;
  let exposition: Exposition;
  beforeAll(async () => {
    gateway = await startGateway({ metering: { sample: 1 } });
    exposition = await readExposition(gateway.adminUrl);
  });
  afterAll(() => gateway.close());

  test('are all exported by the gateway', () => {
    const missing = wantedNames.filter((name) => !exposition.names.has(name));
    const where = missing.map((name) => [
      name,
      expressions.find(({ expr }) => metricNames(expr).includes(name))?.place,
    ]);
    expect(where).toEqual([]);
  });

  test.each(['textgate_', 'gen_ai_'])('cover every exported metric that begins with %s', (prefix) => {
    const exported = [...exposition.names].filter((name) => name.startsWith(prefix));
    const family = (name: string): string => name.replace(/_(bucket|sum|count)$/, '');
    const shown = new Set(wantedNames.map(family));
    expect(exported.filter((name) => !shown.has(family(name)))).toEqual([]);
  });
});

describe.each(dashboards)('the dashboard in $file', ({ text, dashboard, panels }) => {
  test('can be provisioned anywhere: fixed uid, no id, data source by variable', () => {
    expect(dashboard).toMatchObject({ id: null, uid: expect.stringMatching(/^textgate-/) as string });
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    const sources = panels.flatMap(({ datasource, targets = [] }) => [
      datasource,
      ...targets.map((t) => t.datasource),
    ]);
    expect(new Set(sources.map((source) => source?.uid))).toEqual(new Set(['${datasource}']));
  });

  test('has its variables, each with an all-value', () => {
    const { list } = dashboard.templating;
    const shared = ['datasource', 'job', 'instance', 'model', 'upstream'];
    const own = dashboard.title === 'textgate / Service' ? ['protocol'] : [];
    expect(list.map(({ name }) => name)).toEqual([...shared, ...own]);
    for (const { name, includeAll, allValue } of list.slice(1)) {
      expect(includeAll).toBe(true);
      // Only jobs that scrape a gateway: other programs, too, have metrics of their process.
      expect(allValue).toBe(name === 'job' ? undefined : '.*');
    }
    const used = new Set([...text.matchAll(/\$\{?([a-z]\w*)/g)].map(([, name]) => name));
    expect(used).toEqual(new Set(list.map(({ name }) => name)));
  });

  test.each(panels.map((panel) => [panel.title, panel] as const))(
    '%s says what it shows, and in what',
    (_, panel) => {
      expect(panel.title).toMatch(/^\S/);
      expect(panel.description).toMatch(/\.$/);
      expect(panel.fieldConfig?.defaults.unit ?? panel.options?.yAxis?.unit).toMatch(/^\S/);
      expect(panel.targets?.filter(({ expr }) => expr !== '')).not.toEqual([]);
      const refs = panel.targets?.map(({ refId }) => refId) ?? [];
      expect(new Set(refs).size).toBe(refs.length);
    },
  );

  test('has no overlapping panels, neither open ones nor those of one collapsed row', () => {
    const all = allPanels(dashboard);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(all.filter(({ gridPos: { x, w } }) => x + w > gridColumns)).toEqual([]);
    for (const shown of [dashboard.panels, ...dashboard.panels.map((row) => row.panels ?? [])]) {
      const pairs = shown.flatMap((one, index) =>
        shown.slice(index + 1).map((other) => [one, other] as const),
      );
      expect(
        pairs.filter(([one, other]) => overlap(one, other)).map((pair) => pair.map((p) => p.title)),
      ).toEqual([]);
    }
  });

  test('shows one job and instance, or all of them, in every query', () => {
    for (const { expr } of panels.flatMap(({ targets = [] }) => targets))
      for (const name of metricNames(expr)) {
        const wanted = recorded.has(name) && name !== 'up' ? ['job'] : ['job', 'instance'];
        const found = matchers(expr).filter(({ metric }) => metric === name);
        for (const label of wanted)
          expect(found.filter((matcher) => matcher.label === label)).toContainEqual(
            expect.objectContaining({ values: [`$${label}`] }),
          );
      }
  });

  test('shows a number instead of "No data" at a glance, and links to the details', () => {
    const ids = new Set(panels.map(({ id }) => String(id)));
    const glances = panels.filter(({ type }) => type === 'stat');
    expect(glances.length).toBeGreaterThan(5);
    for (const { fieldConfig, links = [] } of glances) {
      expect(fieldConfig?.defaults.noValue).toMatch(/^[0–]$/);
      for (const { url } of links) {
        const [, id] = /viewPanel=(\d+)&\$\{__url_time_range\}&\$\{__all_variables\}$/.exec(url) ?? [];
        expect(url.startsWith('/alerting/') || ids.has(id ?? '')).toBe(true);
      }
    }
  });

  test('leaves colours to the theme', () => {
    expect(text).not.toMatch(/"(#[0-9a-f]{3,8}|rgba?\([^"]*)"/i);
  });

  test('is formatted by two spaces', () => {
    expect(text).toBe(`${JSON.stringify(dashboard, null, 2)}\n`);
  });
});

test('the limit of the memory for answers is drawn where the gateway has it', () => {
  const limits = expressions.flatMap(({ place, expr }) => {
    const [, mebibytes] = /^vector\((\d+) \* 1024 \* 1024\)$/.exec(expr) ?? [];
    return mebibytes === undefined ? [] : [[place, Number(mebibytes) * 1_048_576]];
  });
  expect(limits).toEqual([['textgate / Service: Answers kept', maxKeptBytes]]);
});

test('the dashboards link to each other', () => {
  const uids = dashboards.map(({ dashboard }) => dashboard.uid);
  expect(new Set(uids).size).toBe(2);
  for (const { text, dashboard } of dashboards)
    for (const uid of uids) expect(text.includes(`"/d/${uid}"`)).toBe(uid !== dashboard.uid);
});

interface RuleTest {
  readonly promql_expr_test: readonly {
    readonly expr: string;
    readonly eval_time: string;
    readonly exp_samples: readonly { readonly labels: string }[];
  }[];
}

const ruleTests = readdirSync(join(prometheusFolder, 'tests')).flatMap(
  (file) => (readYaml(join(prometheusFolder, 'tests', file)) as { tests: RuleTest[] }).tests,
);

describe.each(alerts)('the alert $alert', ({ alert = '', labels = {}, annotations = {} }) => {
  test('has a severity, a summary, a description and a runbook', () => {
    expect(labels['severity']).toMatch(/^(critical|warning|info)$/);
    expect(annotations['summary']).toMatch(/^[^{]+[^.]$/);
    expect(annotations['description']).toMatch(/\{\{ \$labels\.\w+ \}\}.*\.$/);
    expect(annotations['runbook']).toMatch(/^Look first [^\n]+\.$/);
    expect(annotations['runbook_url']).toBe(`docs/operators/alerts.md#${alert.toLowerCase()}`);
  });

  test('fires during an incident of its tests with the labels that its texts use, and clears after it', () => {
    const firing = `alertname="${alert}", alertstate="firing"`;
    const incidents = ruleTests
      .map((incident) => incident.promql_expr_test.filter(({ expr }) => expr.includes(firing)))
      .map((steps) => steps.map(({ exp_samples: samples }) => samples.length > 0));
    expect(incidents).toContainEqual([false, true, false]);
    const fired = ruleTests
      .flatMap((incident) => incident.promql_expr_test.flatMap((step) => step.exp_samples))
      .find((sample) => sample.labels.includes(firing));
    for (const [, label] of JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g))
      expect(fired?.labels).toContain(`${label}="`);
  });
});

function overlap({ gridPos: a }: Panel, { gridPos: b }: Panel): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
