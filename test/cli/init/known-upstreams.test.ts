import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { findInEnvironment, upstreamAt } from '../../../src/cli/init/find-upstreams.ts';
import { localServers, providers, variableOf } from '../../../src/cli/init/known-upstreams.ts';
import { readProvidersTable } from '../../support/providers-table.ts';

const at = (url: string, variable: string | null = null) =>
  upstreamAt({ url, variable, foundBy: '--upstream' });

const tested = [...readProvidersTable().values()].map((line) => parse(line) as unknown);

describe('the upstreams that textgate init knows', () => {
  test.each([...providers, ...localServers])(
    'have the tested settings of the documentation: $name',
    ({ line }) => {
      expect(tested).toContainEqual(line);
    },
  );

  test.each(providers)('are found by the variable with their key: $name', ({ name, line }) => {
    const variable = variableOf(line) ?? '';
    expect(findInEnvironment({ [variable]: 'k' })).toEqual([{ name, line, foundBy: variable }]);
    expect(findInEnvironment({ [variable]: '' })).toEqual([]);
  });

  test('have the address to which the SDK of OpenAI would send its key', () => {
    const [found] = findInEnvironment({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' });
    expect(found).toMatchObject({
      name: 'local',
      line: { url: 'http://127.0.0.1:9/v1', apiKey: '${OPENAI_API_KEY}' },
    });
  });

  test('are joined by that of a gateway without a config file', () => {
    const environment = {
      TEXTGATE_UPSTREAM_URL: 'https://models.example/v1',
      TEXTGATE_UPSTREAM_API_KEY: 'k',
    };
    expect(findInEnvironment(environment)).toMatchObject([
      { name: 'models.example', line: { apiKey: '${TEXTGATE_UPSTREAM_API_KEY}' } },
    ]);
  });

  test('are recognised by their address, with the variable that the operator names', () => {
    expect(at('https://api.groq.com/openai/v1/', 'MY_KEY')).toMatchObject({
      name: 'groq',
      line: {
        url: 'https://api.groq.com/openai/v1',
        apiKey: '${MY_KEY}',
        maxTokensField: 'max_completion_tokens',
      },
    });
    expect(at('https://api.groq.com.example/openai/v1')).toMatchObject({
      name: 'api.groq.com.example',
    });
  });
});
