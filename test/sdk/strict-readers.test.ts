import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { collectSent } from '../support/sent-bodies.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const sent = await collectSent();

test('there are bodies and events of every kind', () => {
  const kinds = Map.groupBy(sent, ({ kind }) => kind);
  for (const kind of ['completion', 'chunk', 'response', 'event', 'error'] as const)
    expect(kinds.get(kind)?.length).toBeGreaterThan(10);
  for (const type of ['response.completed', 'response.incomplete', 'response.failed', 'error'])
    expect(sent.some(({ of }) => of.endsWith(`: ${type}`))).toBe(true);
});

/**
 * The types of OpenAI's own library, which come from its description of the API. `output_text` is made by the library, and
 * `usage` is `null` where there is none, as OpenAI itself has it, and as the description of Open Responses requires.
 */
const types = `
import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { Model } from 'openai/resources/models';
import type { Response, ResponseStreamEvent, ResponseUsage } from 'openai/resources/responses/responses';
import type { ErrorObject } from 'openai/resources/shared';
type OnWire<Of> = Of extends { response: Response } ? Omit<Of, 'response'> & { response: Kinds['response'] } : Of;
interface Kinds {
  completion: ChatCompletion;
  chunk: ChatCompletionChunk;
  response: Omit<Response, 'output_text' | 'usage'> & { usage: ResponseUsage | null };
  event: OnWire<ResponseStreamEvent>;
  error: { error: ErrorObject };
  models: { object: 'list'; data: Model[] };
  model: Model;
}
type Mutable<Of> = { -readonly [Key in keyof Of]: Mutable<Of[Key]> };
declare function check<Kind extends keyof Kinds>(kind: Kind, body: Kinds[Kind]): void;
`;

test('they have the types of the official library', () => {
  const folder = makeTemporaryFolder();
  const modules = join(import.meta.dirname, '../../node_modules');
  const options = { strict: true, noEmit: true, skipLibCheck: true, module: 'nodenext', types: [] };
  symlinkSync(modules, join(folder, 'node_modules'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
  const lines = sent.map(({ kind, of, body }, at) => {
    const text = JSON.stringify(withOpenAiCode(body));
    return `const sent${at} = ${text} as const; check('${kind}', sent${at} as Mutable<typeof sent${at}>); // ${of}`;
  });
  writeFileSync(join(folder, 'sent.mts'), types + lines.join('\n'));
  const { stdout, status } = spawnSync(join(modules, '.bin/tsc'), ['-p', folder], { encoding: 'utf8' });
  expect([stdout, status]).toEqual(['', 0]);
});

/**
 * A failed response with a code that OpenAI has: its list for them has none for most of the gateway's failures, so clients
 * get the gateway's own code there, as they do in every error.
 */
function withOpenAiCode(body: unknown): unknown {
  const { response } = body as { response?: { error?: object | null } };
  if (response?.error === undefined || response.error === null) return body;
  return {
    ...(body as object),
    response: { ...response, error: { ...response.error, code: 'server_error' } },
  };
}
