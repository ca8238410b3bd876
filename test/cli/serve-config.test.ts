import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/load.ts';
import { loadServeConfig } from '../../src/cli/serve/serve-config.ts';
import type { ServeOptions } from '../../src/cli/serve/serve-config.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

function fileWith(listeners: string): string {
  const file = join(makeTemporaryFolder(), 'textgate.yaml');
  writeFileSync(file, `upstreams: { demo: { url: "demo:" } }\nmodels: { from: demo }\n${listeners}`);
  return file;
}

/** The message of a config that is refused, without the file's path. */
function refusalOf(options: ServeOptions, environment: Readonly<Record<string, string>> = {}): string {
  try {
    loadServeConfig(options, environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replace(/^\/\S+/, 'the file');
    throw error;
  }
  return 'accepted';
}

const head = "the command line can't be used:\n  - ";
const expectedHost = 'expected a host name or an IP address, such as 127.0.0.1 or 0.0.0.0';

describe('the options of serve', () => {
  test.each<[string, ServeOptions, string]>([
    ['a blank address', { host: '' }, `--host: ${expectedHost}`],
    ['a blank address for operators', { adminHost: '' }, `--admin-host: ${expectedHost}`],
    ['an address with a port', { host: 'localhost:80' }, `--host: ${expectedHost}: write the port into port`],
    [
      'the port of the other listener',
      { port: 8_081 },
      '--port: the same port as that of the listener for operators: write another one, such as 8080',
    ],
    [
      'the port of the other listener, for operators',
      { adminPort: 8_080 },
      '--admin-port: the same port as that of the listener for clients: write another one, such as 8081',
    ],
  ])('are refused with %s, with and without a config file', (_what, options, problem) => {
    expect(refusalOf(options)).toBe(head + problem);
    const config = fileWith('server: { host: 127.0.0.1, drain: 1s }\nadmin: { host: 127.0.0.1 }\n');
    expect(refusalOf({ config, ...options })).toBe(head + problem);
  });

  test('have precedence over the file and the environment, so that a wrong value there does not count', () => {
    const config = fileWith('server: { host: "", port: 70000 }\nadmin: { host: "a b" }\n');
    const options = { config, host: '0.0.0.0', port: 1, adminHost: '::1', adminPort: 2 };
    const environment = { TEXTGATE_PORT: 'http' };
    expect(loadServeConfig(options, environment)).toMatchObject({
      server: { host: '0.0.0.0', port: 1 },
      admin: { host: '::1', port: 2 },
    });
    const withoutFile = loadServeConfig({ port: 3, adminHost: '10.0.0.1' }, environment);
    expect(withoutFile).toMatchObject({ server: { port: 3 }, admin: { host: '10.0.0.1', port: 8_081 } });
  });

  test('are reported with the problems of the file, each by its name', () => {
    const config = fileWith('server: { prot: 1 }\n');
    expect(refusalOf({ config, adminHost: '' })).toBe(
      `the file can't be used:\n  - --admin-host: ${expectedHost}\n` +
        "  - line 3: server.prot: unknown key; did you mean 'port'?",
    );
  });

  test.each(['sk-live-canary7', 'canary7', 'Bearer canary'])(
    'are refused with %s as the name of a variable, which is not quoted',
    (upstreamKeyEnv) => {
      expect(refusalOf({ upstream: 'http://127.0.0.1:1/v1', upstreamKeyEnv })).toBe(
        `${head}--upstream-key-env: there is no environment variable of this name: give its name, and not the key itself`,
      );
    },
  );
});
