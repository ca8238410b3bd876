import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openStage } from '../support/stage.ts';
import { sayTexts } from '../support/scripted-upstream.ts';
import { hasRecordings, recordings } from '../support/shared-recordings.ts';

/** Paths for which a real client's body may be refused: each requests a feature that the service does not have. */
const lackedFeatures: ReadonlySet<string> = new Set([
  'tools',
  'tool_choice',
  'functions',
  'messages[].role',
  'messages[].tool_calls',
  'messages[].tool_call_id',
  'messages[].content[].type',
  'input[].type',
  'input[].content[].type',
  'response_format.type',
  'text.format.type',
  'n',
  'stop',
  'logprobs',
  'top_logprobs',
  'audio',
  'web_search_options',
  'provider',
  'previous_response_id',
  'service_tier',
  'venice_parameters',
  'search_context_size',
  'safety_model',
  'echo',
  'logit_bias',
  'extra_body',
  'safe_prompt',
  'repetition_penalty',
  'top_k',
  'min_p',
  'include',
]);

const { upstream, gateway } = await openStage();
upstream.play(sayTexts(['x']));

describe.skipIf(!hasRecordings)('bodies that real clients sent (kept beside the checkout)', () => {
  test.each([
    ['chat', '/v1/chat/completions'],
    ['responses', '/v1/responses'],
  ])('to %s are served, or refused for a named missing feature', async (folder, path) => {
    const refusedByProvider = readRefusedByProvider();
    const outcomes = new Map<string, number>();
    const surprises: string[] = [];
    for (const file of readdirSync(join(recordings, 'requests', folder)).toSorted()) {
      const text = readFileSync(join(recordings, 'requests', folder, file), 'utf8');
      const body = { ...(JSON.parse(text) as object), model: 'small' };
      const response = await gateway.post(path, body);
      const answer = await response.text();
      const outcome = response.ok ? 'accepted' : refusalOf(answer);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      const param = outcome.split(' ')[1] ?? '';
      const isDue = lackedFeatures.has(param) || refusedByProvider.has(`requests/${folder}/${file}`);
      if (response.status >= 500 || (!response.ok && !isDue)) surprises.push(`${file}: ${answer}`);
    }
    const table = [...outcomes]
      .toSorted(([, a], [, b]) => b - a)
      .map(([outcome, count]) => `${count}\t${outcome}`);
    process.stdout.write(`\nrecorded ${folder} bodies:\n${table.join('\n')}\n`);
    expect(surprises).toEqual([]);
  });
});

/** The code and the path of a refusal, without indexes. */
function refusalOf(answer: string): string {
  const { error } = JSON.parse(answer) as { error: { code: string; param: string | null } };
  return `${error.code} ${(error.param ?? 'null').replaceAll(/\[\d+\]/g, '[]')}`;
}

/** Invalid bodies: their own provider answered them with a 4xx. */
function readRefusedByProvider(): ReadonlySet<string> {
  const text = readFileSync(join(recordings, 'requests', 'manifest.json'), 'utf8');
  const entries = JSON.parse(text) as readonly { file: string; response_status: number | null }[];
  return new Set(
    entries.filter(({ response_status: status }) => (status ?? 0) >= 400).map(({ file }) => file),
  );
}
