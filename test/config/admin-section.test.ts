import { describe, expect, test } from 'vitest';
import { environmentConfig } from '../../src/config/load.ts';
import { showConfig } from '../../src/config/show-config.ts';
import { createGateway } from '../../src/gateway.ts';
import { loadYaml, problemsOf } from '../support/config-file.ts';

const rest = 'upstreams: { local: { url: "http://127.0.0.1:8000/v1" } }\nmodels: { from: local }\n';
const [token, readOnlyToken] = ['a-token-of-an-admin', 'a-token-of-a-reader'];

const problemOf = (section: string): readonly string[] =>
  problemsOf(() => loadYaml(`${section}\n${rest}`, {}));

describe('the read-only token', () => {
  test.each([
    [`admin: { token: ${token}, readOnlyToken: ${token} }`, 'admin.readOnlyToken: expected another token'],
    [
      `admin: { token: ${token}, readOnlyToken: " ${token}\\n" }`,
      'admin.readOnlyToken: expected another token',
    ],
    ['admin: { readOnlyToken: short }', 'admin.readOnlyToken: expected 16 characters or more'],
    ['admin: { readOnlyToken: "with blanks in its middle" }', 'expected printable ASCII without blanks'],
  ])('%j is refused: %s', (section, problem) => {
    const problems = problemOf(section);
    expect(problems).toEqual([expect.stringContaining(problem)]);
    expect(problems.join()).not.toContain(token);
  });

  test('comes from the environment, too, and is hidden where the config is shown', () => {
    const config = environmentConfig({
      TEXTGATE_ADMIN_TOKEN: token,
      TEXTGATE_ADMIN_READ_ONLY_TOKEN: `${readOnlyToken}\n`,
    });
    expect(config.admin).toMatchObject({ token, readOnlyToken });
    expect(showConfig(config)).toContain('readOnlyToken: (hidden-by-config-show)');
    expect(showConfig(config)).not.toContain(readOnlyToken);
  });

  test('must differ from a token that is not in the config, such as that of the token file', () => {
    const input = {
      admin: { readOnlyToken: token },
      storage: { url: 'sqlite::memory:' },
      upstreams: { local: { url: 'demo:' } },
      models: { from: 'local' },
    };
    const problems = problemsOf(() => createGateway(input, { adminToken: token }));
    expect(problems).toEqual(['admin.readOnlyToken: expected another token than the admin token']);
  });
});

describe('tokens with names', () => {
  const tokens = (...entries: readonly string[]): string =>
    `admin: { token: ${token}, tokens: [${entries.join(', ')}] }`;

  test.each([
    [tokens(`{ name: ada, token: ${token} }`), 'admin.tokens[0].token: expected another token'],
    [
      tokens(
        `{ name: ada, token: ${readOnlyToken} }`,
        `{ name: bob, token: ${readOnlyToken}, readOnly: true }`,
      ),
      'admin.tokens[1].token: expected another token',
    ],
    [
      tokens(`{ name: ada, token: ${readOnlyToken} }`, '{ name: ada, token: a-token-of-another-ada }'),
      'admin.tokens[1].name: another token has this name',
    ],
    [tokens(`{ name: admin.token, token: ${readOnlyToken} }`), 'admin.tokens[0].name: expected another name'],
    [
      tokens(`{ name: "ada ", token: ${readOnlyToken} }`),
      'admin.tokens[0].name: expected a name without blanks',
    ],
    [
      tokens(String.raw`{ name: "\u202Eada", token: ${readOnlyToken} }`),
      'admin.tokens[0].name: expected a name without control characters, direction marks',
    ],
    [tokens(`{ name: "", token: ${readOnlyToken} }`), 'admin.tokens[0].name: expected a name'],
    [tokens('{ name: ada, token: short }'), 'admin.tokens[0].token: expected 16 characters or more'],
    [tokens(`{ token: ${readOnlyToken} }`), 'admin.tokens[0].name'],
  ])('%s is refused: %s', (section, problem) => {
    const problems = problemOf(section);
    expect(problems).toEqual([expect.stringContaining(problem)]);
    expect(problems.join()).not.toContain(readOnlyToken);
  });

  test('are hidden where the config is shown, and must differ from that of the token file', () => {
    const config = loadYaml(`${tokens(`{ name: ada, token: ${readOnlyToken} }`)}\n${rest}`, {});
    expect(config.admin.tokens).toEqual([{ name: 'ada', token: readOnlyToken, readOnly: false }]);
    expect(showConfig(config)).toContain('name: ada');
    expect(showConfig(config)).not.toContain(readOnlyToken);
    const input = {
      admin: { tokens: [{ name: 'ada', token }] },
      storage: { url: 'sqlite::memory:' },
      upstreams: { local: { url: 'demo:' } },
      models: { from: 'local' },
    };
    const problems = problemsOf(() => createGateway(input, { adminToken: token }));
    expect(problems).toEqual(['admin.tokens[0].token: expected another token than the admin token']);
  });
});

describe('the names of the admin listener', () => {
  test.each([
    'https://gateway.internal',
    'gateway.internal:8081',
    'gateway.internal/',
    '*',
    '::1',
    '',
    'a..b',
  ])('%j is refused', (name) => {
    const problems = problemOf(`admin: { hosts: [${JSON.stringify(name)}] }`);
    expect(problems).toEqual([expect.stringMatching(/^.*admin\.hosts\[0\]: expected a host name without/)]);
  });

  test('are read in lower case', () => {
    const { admin } = loadYaml(
      `admin: { hosts: [Gateway.Internal, "[2001:DB8::1]", 10.0.0.7] }\n${rest}`,
      {},
    );
    expect(admin.hosts).toEqual(['gateway.internal', '[2001:db8::1]', '10.0.0.7']);
  });
});

test.each(['', '  ', 'two\nlines', 'a\u202Eb', 'x'.repeat(201)])('the contact %j is refused', (contact) => {
  expect(problemOf(`server: { contact: ${JSON.stringify(contact)} }`)).toEqual([
    expect.stringContaining('server.contact: expected'),
  ]);
});
