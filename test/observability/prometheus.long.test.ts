import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { readExposition } from './exposition.ts';
import type { Exposition } from './exposition.ts';
import { dashboards, expressions, prometheusFolder, recorded } from './monitoring-files.ts';
import { eventuallySeen, hasPrometheus, promtool, startPrometheus } from './prometheus-process.ts';
import type { PrometheusProcess } from './prometheus-process.ts';
import { matchers } from './promql.ts';
import { openScene } from './scene.ts';
import type { Scene } from './scene.ts';

/** How long the start and two rounds of load may take, in milliseconds. */
const setupMs = 120_000;

/** Labels that Prometheus adds when it scrapes. */
const scrapeLabels = new Set(['job', 'instance']);

const panelQueries = dashboards.flatMap(({ dashboard, panels }) =>
  panels.flatMap(({ title, targets = [] }) =>
    targets.map((target) => ({ place: `${dashboard.title}: ${title} ${target.refId}`, ...target })),
  ),
);

/** A panel's query as the dashboard sends it with every variable at its all-value. */
function withAllValues(expression: string): string {
  return expression
    .replace(/\[\$__(rate_interval|range)\]/g, '[1m]')
    .replaceAll('$job', 'textgate')
    .replace(/\$(instance|model|upstream|protocol)/g, '.*');
}

describe.skipIf(!hasPrometheus)('promtool (needs the package prometheus)', () => {
  test('accepts the config and the rules', () => {
    expect(promtool(['check', 'config', 'prometheus.yml'])).toMatchObject({ status: 0 });
    expect(promtool(['check', 'rules', 'recording-rules.yml', 'alert-rules.yml'])).toMatchObject({
      status: 0,
    });
  });

  test.each(readdirSync(join(prometheusFolder, 'tests')))(
    'finds every alert as the incidents in %s have it',
    (file) => {
      const { status, said } = promtool(['test', 'rules', join('tests', file)]);
      expect(said).toContain('SUCCESS');
      expect(status).toBe(0);
    },
  );

  test('fails when the incident of an alert does not happen', () => {
    const text = readFileSync(join(prometheusFolder, 'tests', 'limits-and-money.yml'), 'utf8');
    const file = join(makeTemporaryFolder(), 'nothing-wrong.yml');
    writeFileSync(file, text.replace('0x9 -1x9', '0x9 0x9').replaceAll('../', `${prometheusFolder}/`));
    const { status, said } = promtool(['test', 'rules', file]);
    expect(said).toContain('TextgateLedgerImbalance');
    expect(said).not.toContain('TextgateLedgerLag');
    expect(status).toBe(1);
  });
});

describe.skipIf(!hasPrometheus)('a Prometheus that scrapes a gateway (needs the package prometheus)', () => {
  let scene: Scene;
  let prometheus: PrometheusProcess;
  let exposition: Exposition;
  const closers: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    scene = await openScene();
    closers.push(() => scene.close());
    const first = await scene.playRound();
    prometheus = await startPrometheus(scene.adminUrl);
    closers.push(() => prometheus.close());
    await scraped(first);
    const second = await scene.playRound();
    await scraped(first + second);
    exposition = await readExposition(scene.adminUrl);
  }, setupMs);
  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });

  async function scraped(requests: number): Promise<void> {
    await eventuallySeen(`${requests} requests`, async () => {
      const [sum] = await prometheus.query('sum(textgate_requests_total)');
      return sum?.value === requests;
    });
  }

  test.each(panelQueries)('shows data in $place', async ({ expr, legendFormat }) => {
    const query = withAllValues(expr);
    let samples = await prometheus.query(query);
    await eventuallySeen(query, async () => {
      samples = await prometheus.query(query);
      return samples.some(({ value }) => Number.isFinite(value));
    });
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      expect(samples.filter(({ metric }) => (metric[label] ?? '') === '')).toEqual([]);
  });

  test('evaluates every rule without an error', async () => {
    const evaluated = async () => (await prometheus.rules()).filter(({ health }) => health !== 'unknown');
    const expected = (await prometheus.rules()).length;
    expect(expected).toBeGreaterThan(0);
    await eventuallySeen('every rule', async () => (await evaluated()).length === expected);
    expect((await evaluated()).filter(({ health, lastError }) => health !== 'ok' || lastError)).toEqual([]);
  });

  test.each([...recorded].filter((name) => name.includes(':')))('records %s', async (name) => {
    await eventuallySeen(name, async () => (await prometheus.query(name)).length > 0);
    expect((await prometheus.query(name)).every(({ metric }) => metric['job'] === 'textgate')).toBe(true);
  });

  test.each(expressions)('the labels and values in the query of $place exist', ({ expr }) => {
    const unknown = matchers(withAllValues(expr)).filter(({ metric, label, values }) => {
      if (recorded.has(metric) || scrapeLabels.has(label)) return false;
      const known = exposition.values(metric, label) ?? [];
      return !values.every((value) => known.some((one) => new RegExp(`^(${value})$`).test(one)));
    });
    expect(unknown).toEqual([]);
  });

  test('has no complaint about the metrics beside the names of prom-client’s own', async () => {
    const text = await (await fetch(`${scene.adminUrl}/metrics`)).text();
    const { status, said } = promtool(['check', 'metrics'], text);
    expect(
      said.replace(/^nodejs_active_\w+_total non-counter metrics should not have "_total" suffix\n/gm, ''),
    ).toBe('');
    expect([0, 3]).toContain(status);
  });
});
