import { describe, expect, test } from 'vitest';
import { entry, importEntries, partOf } from './imported.ts';

describe('a header', () => {
  test.each([
    'x-gw: AIzaSyA0123456789',
    'x-gw: ghp_0123456789abcdef',
    'x-gw: AKIA0123456789ABCDEF',
    'X-Pass: K9',
    'x-gw: 0123456789abcdef0123456789abcdef',
    'x-gw: "https://u:K16@h/"',
    'x-gw: "user:pass"',
    'X-Team: "blue$"',
    'HTTP-Referer: "https://u:K16@h/"',
    'HTTP-Referer: "https://h/?api_key=K16"',
    'X-Title: sk-0123456789',
    'User-Agent: Bearer K9',
  ])('of which a value may be a secret is a variable, which the report names: %s', async (header) => {
    const { stdout, stderr, written, config } = await importEntries([
      entry('a', `model: groq/a, extra_headers: { ${header} }`),
    ]);
    const [, name = '', value = ''] = /^([\w-]+): "?([^"]+)/.exec(header) ?? [];
    const variable = name.toUpperCase().replaceAll('-', '_');
    expect(config.upstreams['groq']?.['headers']).toEqual({ [name]: `\${${variable}}` });
    expect(partOf(stdout, 'Changed')).toContain(`put it into the variable ${variable} (a)\n`);
    expect(stdout).toContain(`The gateway reads GROQ_API_KEY, ${variable}.\n`);
    expect(stdout + stderr + written).not.toContain(value);
  });

  test('that is known to be harmless is copied', async () => {
    const headers = {
      'HTTP-Referer': 'https://chat.example/',
      'X-Title': 'Chat',
      'User-Agent': 'chat/1.0',
      'OpenAI-Beta': 'assistants=v2',
      'anthropic-version': '2023-06-01',
    };
    const { config } = await importEntries([
      entry('a', `model: groq/a, extra_headers: ${JSON.stringify(headers)}`),
    ]);
    expect(config.upstreams['groq']?.['headers']).toEqual(headers);
  });
});

describe('an address', () => {
  test.each([
    'https://host/sk-SECRET0123456789/v1',
    'https://host/t/eyJhbGciOi.eyJzdWIiOi.SECRET/v1',
    'https://host/ghp_SECRET0123456789/v1',
    'https://host/v1?x=AIzaSECRET0123456789',
    '${BASE:-https://host/v1?api_key=SECRET}',
    'https://${HOST}/hf_SECRET0123456789/v1',
    'https://${HOST:-sk-SECRET0123456789}/v1',
  ])('with a key in it leaves the model out: %s', async (address) => {
    const { written, stdout } = await importEntries([
      entry('good', 'model: groq/good'),
      entry('a', `model: openai/a, api_base: "${address}"`),
    ]);
    expect(partOf(stdout, 'No counterpart')).toContain('api_base has a key in its query or path');
    expect(written + stdout).not.toContain('SECRET');
  });

  test('with an id of hex digits is taken over', async () => {
    const url = 'https://gateway.example/v1/0123456789abcdef0123456789abcdef/mine/openai';
    const { config } = await importEntries([entry('a', `model: openai/a, api_base: "${url}"`)]);
    expect(config.upstreams).toEqual({ 'gateway.example': { url } });
  });
});
