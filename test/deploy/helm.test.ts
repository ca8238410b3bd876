import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configFolder } from '../observability/monitoring-files.ts';
import { monitoringObjects, parseObjects, readObjects } from './kubernetes-objects.ts';
import type { KubernetesObject } from './kubernetes-objects.ts';

const chart = join(configFolder, 'helm', 'textgate');

/** Helm 3.14 or newer, or 4; `HELM` names another path. */
const helm = process.env['HELM'] ?? 'helm';
const hasHelm = spawnSync(helm, ['version']).status === 0;

function run(...args: readonly string[]): {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
} {
  return spawnSync(helm, args, { cwd: chart, encoding: 'utf8' });
}

function render(...args: readonly string[]): readonly KubernetesObject[] {
  const { status, stdout, stderr } = run('template', 'textgate', chart, ...args);
  expect({ status, stderr: stderr.replace(/^.*INFO.*\n/gm, '') }).toEqual({ status: 0, stderr: '' });
  return parseObjects(stdout);
}

/** Objects in an order that does not depend on the file, with each container's variables in order of their names. */
function comparable(objects: readonly object[]): readonly unknown[] {
  const sorted = (objects as readonly KubernetesObject[]).toSorted((a, b) =>
    nameOf(a).localeCompare(nameOf(b)),
  );
  return JSON.parse(JSON.stringify(sorted), (key, value: unknown) =>
    key === 'env' && Array.isArray(value) ? value.toSorted((a, b) => a.name.localeCompare(b.name)) : value,
  );
}

const nameOf = ({ kind, metadata }: KubernetesObject): string => `${kind} ${metadata.name}`;

describe.skipIf(!hasHelm)('the chart for Helm (needs helm, or HELM with its path)', () => {
  test.for(['nodes', 'model-server'])('renders the objects of config/kubernetes/%s.yaml', (name) => {
    const rendered = render('--values', `values-${name}.yaml`);
    expect(comparable(rendered)).toEqual(comparable(readObjects(`${name}.yaml`)));
  });

  test('renders the objects of config/kubernetes/monitoring.yaml', () => {
    const rendered = render('--set', 'monitoring.enabled=true', '--show-only', 'templates/monitoring.yaml');
    expect(comparable(rendered)).toEqual(comparable(monitoringObjects()));
  });

  test('names its objects after the release', () => {
    const { stdout } = run('template', 'other', chart);
    for (const { metadata } of parseObjects(stdout)) {
      expect(metadata.name).toMatch(/^other/);
      expect(metadata.labels['app.kubernetes.io/instance']).toBe('other');
    }
  });

  test('says what is wrong with values that can’t be used', () => {
    expect(run('template', 'textgate', chart, '--set', 'replica=2').stderr).toContain(
      "'replica' not allowed",
    );
    expect(run('template', 'textgate', chart, '--set', 'replicas=2').stderr).toContain(
      'several replicas need one PostgreSQL database',
    );
  });

  test('has no fault that helm lint knows', () => {
    const { status, stdout } = run('lint', '--strict', chart);
    expect({ status, stdout }).toMatchObject({ status: 0 });
  });
});
