import { describe, expect, test } from 'vitest';
import { environmentNotices } from '../../src/cli/serve/environment-notices.ts';
import type { ServeOptions } from '../../src/cli/serve/serve-config.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';

type Case = readonly [
  name: string,
  environment: Readonly<Record<string, string>>,
  options: ServeOptions,
  text: string,
  ...notices: string[],
];

const file = { config: 'textgate.yaml' };
const url = 'http://127.0.0.1:8000/v1';
const npm = { npm_lifecycle_event: 'start' };

const cases: readonly Case[] = [
  ['a start without variables', { PATH: '/bin' }, {}, ''],
  [
    'a misspelt variable',
    { TEXTGATE_UPSTEAM_URL: url },
    {},
    '',
    'TEXTGATE_UPSTEAM_URL has no effect: textgate has no such variable; did you mean TEXTGATE_UPSTREAM_URL?',
  ],
  [
    'a variable that resembles none',
    { TEXTGATE_COLOUR_OF_BLINKING: 'red' },
    {},
    '',
    'TEXTGATE_COLOUR_OF_BLINKING has no effect: textgate has no such variable',
  ],
  ['an empty variable, as compose files pass it on', { TEXTGATE_UPSTEAM_URL: '' }, {}, ''],
  [
    'a variable to which the config file refers',
    { TEXTGATE_LOCAL_KEY: 'x' },
    file,
    'apiKey: ${TEXTGATE_LOCAL_KEY}',
  ],
  [
    'the variables of a service in Kubernetes',
    { TEXTGATE_SERVICE_HOST: 'x', TEXTGATE_PORT_8080_TCP: 'x' },
    {},
    '',
  ],
  [
    'the URL of an upstream beside a config file',
    { TEXTGATE_UPSTREAM_URL: url },
    file,
    'upstreams: {}',
    'TEXTGATE_UPSTREAM_URL has no effect beside a config file, which names its upstreams',
  ],
  [
    'the URL of an upstream in the config file',
    { TEXTGATE_UPSTREAM_URL: url },
    file,
    'url: ${TEXTGATE_UPSTREAM_URL}',
  ],
  [
    'the key of an upstream without its URL',
    { TEXTGATE_UPSTREAM_API_KEY: 'x' },
    {},
    '',
    'TEXTGATE_UPSTREAM_API_KEY has no effect without TEXTGATE_UPSTREAM_URL',
  ],
  ['the key of an upstream that --upstream names', { TEXTGATE_UPSTREAM_API_KEY: 'x' }, { upstream: url }, ''],
  [
    'an option that npm took',
    { ...npm, npm_config_admin_port: '33087' },
    {},
    '',
    'npm took --admin-port as its own option: with npm, write -- before options: npm start -- --port 8090',
  ],
];

describe('a start warns of what has no effect:', () => {
  test.each(cases.map((each) => ({ name: each[0], each })))(
    '$name',
    ({ each: [, environment, options, text, ...notices] }) => {
      expect(environmentNotices(environment, options, text)).toEqual(notices);
    },
  );

  test('before it serves, and it says that the demo is the demo', async () => {
    const server = serveHere(['serve'], makeTemporaryFolder(), {
      ...freePorts,
      TEXTGATE_UPSTEAM_URL: url,
    });
    await server.printed(/models: demo \(built in\); set TEXTGATE_UPSTREAM_URL for a real server\n/);
    expect(server.errors()).toMatch(/^TEXTGATE_UPSTEAM_URL has no effect.*\n[^]*textgate serves/);
  });

  test('an option that npm took ends the start if its value became an argument', async () => {
    const taken = { ...npm, npm_config_port: 'true' };
    for (const args of [['33086'], ['33086', '33087']]) {
      const { code, stderr } = await runCommand(['serve', ...args], makeTemporaryFolder(), taken);
      expect([code, stderr]).toEqual([1, expect.stringContaining('write -- before options: npm start --')]);
    }
  });
});
