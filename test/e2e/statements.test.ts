import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/gateway.ts';
import { readStatement } from '../../src/domain/statements/read-statement.ts';
import { signingKeyOf } from '../../src/shared/signing-key.ts';
import { problemsOf } from '../support/config-file.ts';
import { faultsOf } from '../support/statement-tools.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

interface KeyList {
  readonly data: readonly { readonly id: string; readonly public_key: string; readonly active: boolean }[];
  readonly root: unknown;
}

/** A gateway below a base path, whose config names a file with the key of its statements, or none. */
async function open(key?: string) {
  const configOf = (file?: string) => ({
    server: { port: 0, basePath: '/llm' },
    admin: { port: 0 },
    storage: { url: 'sqlite::memory:' },
    upstreams: { demo: { url: 'demo:' } },
    models: { demo: { routes: [{ upstream: 'demo', model: 'demo' }], price: { input: '1', output: '2' } } },
    ...(file === undefined ? {} : { statements: { key: file } }),
  });
  const gateway = createGateway(configOf(key), { logDestination: { write: () => {} } });
  onTestFinished(() => gateway.close());
  const { url } = await gateway.listen();
  const base = url.replace(/\/v1$/, '');
  const made = await gateway.keys.create({ name: 'bob', balance: '1.50' });
  const keys = async (): Promise<KeyList> =>
    (await fetch(`${base}/v1/statement-keys`)).json() as Promise<KeyList>;
  return {
    base,
    keys,
    useKey: (file?: string) => gateway.reload(configOf(file)),
    state: async (): Promise<string> => {
      const answer = await fetch(`${base}/v1/key/statement`, {
        headers: { authorization: `Bearer ${made.key}` },
      });
      return answer.text();
    },
  };
}

const listed = ({ data }: KeyList) => data.map(({ id, public_key: pem }) => ({ id, pem }));

function writeKey(): { readonly file: string; readonly id: string } {
  const file = join(makeTemporaryFolder(), 'statements.pem');
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return { file, id: signingKeyOf(privateKey).id };
}

describe('the keys of statements', () => {
  test('are those of the config, one after the other: earlier statements stay valid with the list of keys', async () => {
    const [first, second] = [writeKey(), writeKey()];
    const { base, keys, useKey, state } = await open(first.file);
    expect(base).toMatch(/\/llm$/);
    const statements = [await state()];
    expect(useKey(second.file)).toEqual([]);
    statements.push(await state());
    useKey();
    statements.push(await state());
    const list = await keys();
    const signers = statements.map((text) => readStatement(text).signedBy);
    expect(signers.slice(0, 2)).toEqual([first.id, second.id]);
    expect(list.data.filter(({ active }) => active).map(({ id }) => id)).toEqual([signers[2]]);
    expect(new Set(list.data.map(({ id }) => id))).toEqual(new Set(signers));
    for (const text of statements) expect(faultsOf(text, listed(list))).toEqual([]);
    expect(
      faultsOf(
        statements[0] ?? '',
        listed(list).filter(({ id }) => id !== first.id),
      ),
    ).toHaveLength(1);
    expect(list.root).toBeNull();
    expect(JSON.stringify(list)).not.toContain('PRIVATE');
  });

  test('can be read by anyone, also before the first statement, and by GET alone', async () => {
    const { base, keys, state } = await open();
    const [only] = (await keys()).data;
    expect(only).toMatchObject({ active: true });
    expect(readStatement(await state()).signedBy).toBe(only?.id);
    expect((await fetch(`${base}/v1/statement-keys`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${base}/v1/statement-keys`, { method: 'HEAD' })).status).toBe(200);
    expect((await fetch(`${base.replace('/llm', '')}/v1/statement-keys`)).status).toBe(404);
  });

  test.each([
    ['a missing file', null, /no such file/],
    [
      'a public key',
      generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' }),
      /a private key of Ed25519/,
    ],
    [
      'a key of another kind',
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
      /a private key of Ed25519/,
    ],
  ])('are refused in a config that names %s, whose content is not quoted', (_what, content, problem) => {
    const file = join(makeTemporaryFolder(), 'key.pem');
    if (content !== null) writeFileSync(file, content);
    const config = { upstreams: {}, models: {}, statements: { key: file } };
    const problems = problemsOf(() => createGateway(config));
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems[0]).toMatch(/^statements\.key: /);
    expect(problems[0]).not.toContain('MC');
  });
});
