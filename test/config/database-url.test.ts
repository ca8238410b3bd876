import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDatabaseUrl } from '../../src/config/database-url.ts';
import { checkConfig } from '../../src/config/load.ts';
import { redactedConfig, showConfig } from '../../src/config/show-config.ts';
import { loadYaml, problemsOf } from '../support/config-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const secret = 'S3CRET-of-the-database';

const rest = 'upstreams: { local: { url: "http://127.0.0.1:1/v1" } }\nmodels: { from: local }\n';

const withUrl = (url: string | { file: string }) =>
  checkConfig(
    { storage: { url }, upstreams: { local: { url: 'http://127.0.0.1:1/v1' } }, models: { from: 'local' } },
    'the config',
  );

describe('storage.url', () => {
  test.each([
    [
      `mysql://me:${secret}@db/gate`,
      'expected sqlite: and a file, such as sqlite:data/textgate.db, or postgres://',
    ],
    [secret, 'expected sqlite: and a file'],
    [`postgres://:${secret}@db/gate`, 'the URL has no user'],
    [`postgres://me:${secret}@db`, 'the URL has no database'],
    [`postgresql://me:1/${secret}@db/gate`, 'is not encoded'],
    [`postgres://me:${secret}#1@db/gate`, 'write %2F, %3F, %23 and %40'],
    [`postgres://me:${secret}@db/gate@1`, 'in a user, a password or the name of a database'],
    [`postgres://me:${secret}%@db/gate`, 'write %25'],
    [`postgres://me:${secret}@db/gate?sslmode=prefer`, 'an sslmode that is none of disable, require'],
    [`postgres://me:${secret}@db/gate?application_name=${secret}`, 'may have the parameters sslmode'],
  ])('%s is refused with its reason alone', (url, reason) => {
    const problems = problemsOf(() => loadYaml(`storage: { url: ${JSON.stringify(url)} }\n${rest}`)).join(
      '\n',
    );
    expect(problems).toContain('storage.url: ');
    expect(problems).toContain(reason);
    expect(problems).not.toContain(secret);
  });

  test('outside a config file may be no reference, which nothing would replace', () => {
    expect(() => withUrl('${DATABASE_URL}')).toThrow('a reference, which is replaced in config files only');
  });

  test('is shown without its password, and what is shown is valid', () => {
    const config = withUrl(`postgres://me:${secret}@db.example:6432/gate?sslmode=verify-full`);
    const shown = 'postgres://me:(hidden-by-config-show)@db.example:6432/gate?sslmode=verify-full';
    expect(showConfig(config)).toContain(`url: ${shown}`);
    expect(redactedConfig(config)).toMatchObject({ storage: { url: shown } });
    expect(withUrl(shown).storage.url).toBe(shown);
    expect(withUrl('postgres://me@db/gate%401').storage.url).toBe('postgres://me@db/gate%401');
    expect(withUrl('postgres://me@db/gate').storage.url).toBe('postgres://me@db/gate');
  });

  test('may be in a file, which is read when the config is checked and when the database is opened', () => {
    const file = join(makeTemporaryFolder(), 'database-url');
    expect(() => withUrl({ file })).toThrow('storage.url.file: there is no such file');
    writeFileSync(file, `postgres://${secret}@\n`);
    expect(() => withUrl({ file })).toThrow(/storage\.url\.file: (?!.*S3CRET)/);
    writeFileSync(file, `postgres://me:${secret}@db/gate\n`);
    expect(readDatabaseUrl(withUrl({ file }).storage.url)).toBe(`postgres://me:${secret}@db/gate`);
    expect(showConfig(withUrl({ file }))).not.toContain(secret);
    writeFileSync(file, '');
    expect(() => readDatabaseUrl({ file })).toThrow('storage.url.file: the file is empty');
  });
});
