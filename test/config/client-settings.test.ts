import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { loadYaml, problemsOf } from '../support/config-file.ts';

const rest = 'upstreams: { local: { url: "http://127.0.0.1:8000/v1" } }\nmodels: { from: local }\n';

/** What is wrong with a setting of the server, and the settings read where nothing is. */
const problemOf = (setting: string): readonly string[] =>
  problemsOf(() => loadYaml(`server:\n  ${setting}\n${rest}`, {}));

describe('trusted proxies', () => {
  test.each([
    ['trustedProxies: [loopbak]', 'server.trustedProxies[0]: expected an IP address or a network'],
    ['trustedProxies: [10.0.0.0/8, proxy.example]', 'server.trustedProxies[1]: expected an IP address'],
    ['trustedProxies: [10.0.0.0/33]', 'or one of the names loopback, linklocal, private'],
    ['trustedProxies: [10.1.2.3/8]', 'write 10.0.0.0/8 for the network, or the address alone'],
    ['trustedProxies: [0.0.0.0/0]', 'every client would be a trusted proxy'],
    ['trustedProxies: ["::/0"]', 'every client would be a trusted proxy'],
    ['trustedProxies: loopback', 'expected a list'],
    ['logAddresses: some', 'expected true or false'],
  ])('%s is refused: %s', (setting, problem) => {
    expect(problemOf(setting)).toEqual([expect.stringContaining(problem)]);
  });

  test('are read into the one form of addresses; names stay', () => {
    const { server } = checkConfig(
      {
        server: { trustedProxies: ['loopback', '::ffff:10.0.0.0/104', ' 2001:DB8::1 '] },
        upstreams: { local: { url: 'http://127.0.0.1:8000/v1' } },
        models: { from: 'local' },
      },
      'the config',
    );
    expect(server.trustedProxies).toEqual(['loopback', '10.0.0.0/8', '2001:db8::1']);
  });
});

describe('the origins of web pages', () => {
  test.each([
    ['https://app.example.com/', 'write https://app.example.com'],
    ['https://app.example.com/path?x#y', 'write https://app.example.com'],
    ['HTTPS://App.Example.com:443', 'write https://app.example.com'],
    ['https://bücher.example', 'write https://xn--bcher-kva.example'],
    ['app.example.com', 'expected an origin such as https://app.example.com, with its scheme'],
    ['https://*.example.com', 'a star stands for every origin'],
    ['https://user:word@app.example.com', 'without a user and password'],
    ['null', 'null is the origin of any local file'],
    ['', 'expected an origin'],
    ['capacitor://localhost/', 'write capacitor://localhost'],
  ])('%j is refused: %s', (origin, problem) => {
    const problems = problemOf(`corsOrigins: [${JSON.stringify(origin)}]`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^line 2: server\.corsOrigins\[0\]: expected /);
    expect(problems[0]).toContain(problem);
  });

  test('are every origin with a star, which stands alone', () => {
    expect(problemOf('corsOrigins: ["*", "https://app.example.com"]')).toEqual([
      expect.stringContaining("server.corsOrigins: expected '*' alone"),
    ]);
    expect(problemOf('corsOrigins: ["*"]')).toEqual([]);
  });

  test.each([
    'https://app.example.com',
    'http://localhost:3000',
    'http://[::1]:5173',
    'capacitor://localhost',
  ])('may be %s', (origin) => {
    expect(problemOf(`corsOrigins: ["${origin}"]`)).toEqual([]);
  });
});

describe('the addresses of a declared key', () => {
  test.each([
    ['[]', 'leave the key out to allow all'],
    ['[office]', 'expected an IP address or a network'],
    ['[10.0.0.1, 10.1.2.3/8]', 'keys.bob.allowFrom[1]: an address with the prefix of its network'],
  ])('%s are refused: %s', (list, problem) => {
    const key = 'c2fdb9a3a8f04c5f9f36d6b1c87e6a44';
    const problems = problemsOf(() =>
      loadYaml(`keys: { bob: { key: ${key}, allowFrom: ${list} } }\n${rest}`, {}),
    );
    expect(problems).toEqual([expect.stringContaining(problem)]);
  });
});
