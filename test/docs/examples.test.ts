import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  exampleScripts,
  examplesPage,
  isOutside,
  openExampleStage,
  printed,
} from '../support/example-scripts.ts';
import { blocksOf } from '../support/page-blocks.ts';
import { sayTexts } from '../support/scripted-upstream.ts';

const packages = join(import.meta.dirname, '..', '..', 'node_modules');
const { upstream, gateway, outputOf, expectToRun } = await openExampleStage();

test('every script of the page has an expected output', () => {
  expect(new Set(exampleScripts.map(([name]) => name))).toEqual(new Set(Object.keys(printed)));
});

describe('the example', () => {
  const own = exampleScripts.filter(([name]) => name.endsWith('.mjs') && !isOutside(name));
  test.each(own)('%s runs as it stands', async (name, text) => {
    await expectToRun(process.execPath, name, text, packages);
  });

  const python = process.env['PYTHON'] ?? 'python3';
  const hasOpenAi = spawnSync(python, ['-c', 'import openai']).status === 0;
  test.skipIf(!hasOpenAi).each(exampleScripts.filter(([name]) => name.endsWith('.py')))(
    '%s runs as it stands (needs a python3 with openai; PYTHON names another one)',
    async (name, text) => expectToRun(python, name, text, packages),
  );
});

describe('the commands of the page', () => {
  const [variables, whole, limited, streamed, named, resumed, reads, ...rest] = blocksOf(
    examplesPage,
    'sh',
  ).map(({ text }) => text);

  test('set the variables that the examples read', () => {
    expect(rest).toEqual([]);
    const names = [...(variables ?? '').matchAll(/^export (\w+)=\S+$/gm)].map(([, name]) => name);
    expect(names).toEqual(['OPENAI_BASE_URL', 'OPENAI_API_KEY']);
  });

  test('print a whole answer', async () => {
    const answer = JSON.parse(await outputOf('sh', '-c', whole ?? '')) as object;
    expect(answer).toMatchObject({ choices: [{ message: { content: 'Hello there.' } }] });
  });

  test('print what an answer cost that could have been refused', async () => {
    expect(await outputOf('sh', '-c', limited ?? '')).toMatch(
      /^HTTP\/1\.1 200 [^]*\r\nx-textgate-charge: \d/,
    );
  });

  test('print the events of a streamed answer', async () => {
    const events = await outputOf('sh', '-c', streamed ?? '');
    expect(events.match(/^event: \S+$/gm)?.at(-1)).toBe('event: response.completed');
  });

  test('print the same answer when a request is sent again', async () => {
    const first = await outputOf('sh', '-c', named ?? '');
    const again = await outputOf('sh', '-c', named ?? '');
    const [, body] = first.split('\r\n\r\n');
    expect(body).toContain('Hello there.');
    expect(again.split('\r\n\r\n')[1]).toBe(body);
    expect([first, again].map((answer) => answer.includes('x-textgate-replayed: true'))).toEqual([
      false,
      true,
    ]);
  });

  test('print the rest of a stream behind its first event', async () => {
    const events = await outputOf('sh', '-c', resumed ?? '');
    expect(events).toMatch(/^id: [0-9a-f]{8}-1\n/);
    expect(events).toContain('there.');
    expect(events.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test("print the models, the key and its requests' receipts", async () => {
    const [models, key, receipts] = (await outputOf('sh', '-c', (reads ?? '').replaceAll('\n', '; echo\n')))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as object);
    expect(models).toMatchObject({ data: [{ id: 'small' }] });
    expect(key).toMatchObject({ name: 'test' });
    expect(receipts).toMatchObject({ data: [{ model: 'small' }, { model: 'small' }] });
  });
});

/** The fields of a value, in their order, with those of objects inside it; a list has the fields of its first entry. */
function fieldsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(fieldsOf);
  if (typeof value !== 'object' || value === null) return null;
  return Object.entries(value).map(([name, inner]) => [name, name === 'usage' ? null : fieldsOf(inner)]);
}

test('the page for clients shows the fields of a receipt', async () => {
  const [shown] = blocksOf('docs/callers/clients.md', 'json');
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  const answer = await gateway.post('/v1/chat/completions', body);
  await answer.text();
  const id = answer.headers.get('x-request-id');
  const receipt: unknown = await (
    await fetch(`${gateway.url}/v1/key/requests/${id}`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    })
  ).json();
  const documented: unknown = JSON.parse(shown?.text ?? '');
  expect(fieldsOf(documented)).toEqual(fieldsOf(receipt));
  expect(receipt).toMatchObject({
    usage: (documented as { usage: object }).usage,
    price: (documented as { price: object }).price,
    charge: (documented as { charge: string }).charge,
  });
});

test('the page about usage shows the fields of its rows', async () => {
  const [shown] = blocksOf('docs/operators/money.md', 'json');
  const usage = await gateway.gateway.usage({ by: 'day,model' });
  expect(fieldsOf(JSON.parse(shown?.text ?? ''))).toEqual(fieldsOf(usage));
});

test('the page of errors shows a refusal as a client gets it', async () => {
  const [shown] = blocksOf('docs/callers/errors.md', 'json');
  const waiting: (() => void)[] = [];
  const { promise: bothRun, resolve } = Promise.withResolvers<void>();
  upstream.play((response, request) => {
    waiting.push(() => void sayTexts(['Hello'])(response, request));
    if (waiting.length === 2) resolve();
  });
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  const running = [0, 1].map(() => gateway.post('/v1/chat/completions', body));
  await bothRun;
  const refused: unknown = await (await gateway.post('/v1/chat/completions', body)).json();
  for (const answer of waiting) answer();
  await Promise.all(running);
  expect(refused).toEqual(JSON.parse(shown?.text ?? ''));
});
