import { createHash } from 'node:crypto';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

/** A key in the form of LiteLLM's: `sk-` and 16 random bytes in base64url. */
const secret = 'sk-Qm7xT2_vR9-kLw4ZpY8dNg';
const hashOf = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;

let upstream: ScriptedUpstream;
let gateway: TestGateway;
const start = async (importedKeys: boolean): Promise<void> => {
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    price: { input: '1', output: '2' },
    server: { importedKeys },
    keys: { declared: { key: 'sk-declared-9fK2mQ7xT4vB8nZ1' } },
  });
};
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['Hello, ', 'world']));
  await start(true);
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const take = (sent: object) => askAdmin(gateway, 'POST', '/keys/import', { name: 'bob', ...sent });
const messages = [{ role: 'user' as const, content: 'Say hello' }];
const clientWith = (apiKey: string) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 }).chat.completions;
const statusWith = async (apiKey: string): Promise<number> => {
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await gateway.post('/v1/chat/completions', { model: 'small', messages }, { headers });
  await answer.text();
  return answer.status;
};

describe('a key that was imported by its hash', () => {
  test('answers the official client, whole and streamed, and is paid from its balance', async () => {
    expect(await statusWith(secret)).toBe(401);
    const { status, body } = await take({ hash: hashOf(secret), balance: '1', models: ['small'] });
    expect([status, body]).toEqual([200, { id: expect.stringMatching(/^key_/), imported: true }]);
    const client = clientWith(secret);
    const whole = await client.create({ model: 'small', messages });
    expect(whole.choices[0]?.message.content).toBe('Hello, world');
    const stream = await client.create({ model: 'small', messages, stream: true });
    const chunks = await Array.fromAsync(stream);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello, world');
    await gateway.recorded();
    const shown = await askAdmin(gateway, 'GET', `/keys/${body.id}`);
    // Two answers of 11 and 7 tokens.
    expect(shown.body).toMatchObject({
      name: 'bob',
      models: ['small'],
      spent: '0.00005',
      balance: '0.99995',
    });
    expect(shown.text).not.toContain(hashOf(secret).slice('sha256:'.length));
  });

  test('is imported once: also after it was revoked, and whatever else is asked for', async () => {
    const hash = hashOf(secret);
    const { id } = (await take({ hash })).body;
    const known = { id, imported: false };
    expect(
      (await take({ hash: hash.toUpperCase(), name: 'eve', balance: '5', models: ['gone'] })).body,
    ).toEqual(known);
    expect(await statusWith(secret)).toBe(200);
    await askAdmin(gateway, 'DELETE', `/keys/${id}`);
    expect(await statusWith(secret)).toBe(401);
    expect((await take({ hash })).body).toEqual(known);
    expect(await statusWith(secret)).toBe(401);
  });

  test('gets a secret of our own form by a rotation, and its old one is not taken again', async () => {
    const { id } = (await take({ hash: hashOf(secret) })).body;
    const { body } = await askAdmin(gateway, 'POST', `/keys/${id}/rotate`, { grace: '1h' });
    expect(body.key).toMatch(new RegExp(`^sk-tg-${id.slice('key_'.length)}-`));
    expect([await statusWith(secret), await statusWith(body.key)]).toEqual([200, 200]);
    await askAdmin(gateway, 'POST', `/keys/${id}/rotate`, {});
    expect([await statusWith(secret), await statusWith(body.key)]).toEqual([401, 401]);
    expect((await take({ hash: hashOf(secret) })).body).toEqual({ id, imported: false });
    expect(await statusWith(secret)).toBe(401);
  });

  test('is one key when it is imported by several at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => (await take({ hash: hashOf(secret), balance: '1' })).body),
    );
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(answers.filter(({ imported }) => imported)).toHaveLength(1);
    expect((await askAdmin(gateway, 'GET', `/keys/${answers[0].id}`)).body.balance).toBe('1.00');
  });

  test('is not the key of a config, which stays as it is', async () => {
    const { data } = (await askAdmin(gateway, 'GET', '/keys?search=declared')).body;
    const { body } = await take({ hash: hashOf('sk-declared-9fK2mQ7xT4vB8nZ1') });
    expect(body).toEqual({ id: data[0].id, imported: false });
  });

  test('is refused if its text can be guessed or has fewer than 20 characters', async () => {
    for (const weak of ['sk-my-example-key-for-production-1234', 'sk-Qm7xT2_vR9-kLw4']) {
      expect((await take({ hash: hashOf(weak) })).body.imported).toBe(true);
      expect(await statusWith(weak)).toBe(401);
    }
  });
});

describe('an import', () => {
  test('is only checked in a dry run', async () => {
    const hash = hashOf(secret);
    expect((await take({ hash, dryRun: true })).body).toEqual({ id: null, imported: false });
    expect(await statusWith(secret)).toBe(401);
    expect(await take({ hash, dryRun: true, models: ['smal'] })).toMatchObject({
      status: 400,
      body: { error: { param: 'models.0', message: expect.stringContaining("did you mean 'small'?") } },
    });
  });

  test.for([
    [{}, ''],
    [{ hash: secret }, 'expected sha256: and 64 hexadecimal digits'],
    [{ hash: 'a'.repeat(64) }, 'expected sha256: and 64 hexadecimal digits'],
    [{ hash: hashOf('') }, 'the hash of an empty text: was a variable not set?'],
  ] as const)('without a hash of a key is refused, which is not quoted: %j', async ([sent, problem]) => {
    const { status, text } = await take(sent);
    expect(status).toBe(400);
    expect(text).toContain("'hash'");
    expect(text).toContain(problem);
    expect(text).not.toContain(secret);
  });

  test('is refused, with the setting to change, where the config takes no imported keys', async () => {
    const { id } = (await take({ hash: hashOf(secret) })).body;
    expect(id).toMatch(/^key_/);
    await gateway.close();
    await start(false);
    const { status, text } = await take({ hash: hashOf(secret) });
    expect(status).toBe(404);
    expect(text).toContain('set server.importedKeys to true');
  });
});

test('a reload that takes the setting away refuses imported keys from the next request on', async () => {
  await take({ hash: hashOf(secret) });
  expect(await statusWith(secret)).toBe(200);
  const config = (importedKeys: boolean) => ({
    server: { importedKeys },
    upstreams: { local: { url: upstream.url } },
    models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true as const } },
  });
  gateway.gateway.reload(config(false));
  expect([await statusWith(secret), await statusWith(gateway.key)]).toEqual([401, 200]);
  expect((await take({ hash: hashOf(secret) })).status).toBe(404);
  gateway.gateway.reload(config(true));
  expect(await statusWith(secret)).toBe(200);
});
