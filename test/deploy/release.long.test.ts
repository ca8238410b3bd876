import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configFolder, readYaml } from '../observability/monitoring-files.ts';
import {
  NoOperationTraceWriter,
  convertWorkflowTemplate,
  parseWorkflow,
} from '../outside/workflow-parser.ts';

const root = join(configFolder, '..');
const workflowsFolder = join(root, '.github', 'workflows');
const workflows = readdirSync(workflowsFolder).map((name) => ({
  name,
  content: readFileSync(join(workflowsFolder, name), 'utf8'),
}));
const { version, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
  scripts: Readonly<Record<string, string>>;
};

describe.for(workflows)('the workflow $name', ({ name, content }) => {
  test('has no fault that the forge’s own parser finds', async () => {
    const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
    expect(context.errors.getErrors().map(({ message }) => message)).toEqual([]);
    if (value === undefined) throw new Error('nothing was parsed');
    const template = await convertWorkflowTemplate(context, value);
    expect(template.errors ?? []).toEqual([]);
    expect(template.jobs.length).toBeGreaterThan(0);
  });

  test('may write nothing, unless a job says so', () => {
    const { permissions } = readYaml(join(workflowsFolder, name)) as { permissions: unknown };
    expect(permissions).toEqual({ contents: 'read' });
  });

  test('runs scripts that package.json has', () => {
    const named = [...content.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, script]) => script);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
  });
});

test('the parser of workflows finds a misspelt key', () => {
  const content = workflows
    .map((workflow) => workflow.content)
    .join('')
    .replace('runs-on', 'run-on');
  const { context } = parseWorkflow({ name: 'misspelt.yml', content }, new NoOperationTraceWriter());
  expect(
    context.errors
      .getErrors()
      .map(({ message }) => message)
      .join('\n'),
  ).toContain('run-on');
});

test('the chart has the version of the package', () => {
  const chart = readYaml(join(configFolder, 'helm', 'textgate', 'Chart.yaml'));
  expect(chart).toMatchObject({ version, appVersion: version });
});

test('a fault is reported with the doctor’s report, and a vulnerability elsewhere', () => {
  const { body } = readYaml(join(root, '.github', 'ISSUE_TEMPLATE', 'fault.yml')) as {
    body: readonly { id?: string; attributes: { description?: string; value?: string } }[];
  };
  expect(body.find(({ id }) => id === 'doctor')?.attributes.description).toContain('textgate doctor --json');
  expect(body[0]?.attributes.value).toContain('SECURITY.md');
});
