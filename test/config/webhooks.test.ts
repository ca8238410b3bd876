import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { showConfig } from '../../src/config/show-config.ts';
import { loadYaml, problemsOf } from '../support/config-file.ts';

const rest = 'upstreams: { local: { url: "http://127.0.0.1:8000/v1" } }\nmodels: { from: local }\n';
const secret = 'a-secret-of-the-webhook';

const problemOf = (settings: string): readonly string[] =>
  problemsOf(() => loadYaml(`webhooks:\n  ops: { ${settings} }\n${rest}`, {}));

describe('webhooks', () => {
  test.each([
    ['secret: "${S}"', 'environment variable S is not set'],
    ['url: "https://x.example"', 'webhooks.ops.secret'],
    [
      `url: "ftp://x.example", secret: ${secret}`,
      'expected an address such as https://hooks.example/textgate',
    ],
    [`url: "https://me:x@x.example", secret: ${secret}`, 'without a user and password'],
    [`url: "http://169.254.169.254/latest", secret: ${secret}`, 'a link-local address'],
    [`url: "http://metadata.google.internal/x", secret: ${secret}`, 'a link-local address'],
    [`url: "https://x.example", secret: short`, 'expected 16 characters or more'],
    [
      `url: "https://x.example", secret: "whsec_not base64 at all"`,
      'expected whsec_ and 16 bytes or more in base64',
    ],
    // Their libraries refuse to decode it: no receiver could verify an event.
    [
      `url: "https://x.example", secret: whsec_${'A'.repeat(22)}`,
      'expected whsec_ and 16 bytes or more in base64',
    ],
    [
      `url: "https://x.example", secret: [${secret}, short]`,
      'webhooks.ops.secret[1]: expected 16 characters or more',
    ],
    [`url: "https://x.example", secret: []`, 'webhooks.ops.secret: expected at least one'],
    [
      `url: "https://x.example", secret: [${secret}, ${secret}2, ${secret}3]`,
      'webhooks.ops.secret: expected a list of 2 or less',
    ],
    [`url: "https://x.example", secret: { file: /x }`, 'webhooks.ops.secret: expected a text'],
    [`url: "https://x.example", secret: 5`, 'webhooks.ops.secret: expected a text'],
    [`url: "https://x.example", secret: ${secret}, events: [balance.lo]`, 'webhooks.ops.events[0]'],
    [`url: "https://x.example", secret: ${secret}, events: []`, 'webhooks.ops.events'],
    [
      `url: "http://x.example", secret: ${secret}, tls: { serverName: x }`,
      'only where the url begins with https://',
    ],
  ])('{ %s } is refused: %s', (settings, problem) => {
    expect(problemOf(settings)).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
    expect(problemOf(settings).join('\n')).not.toContain(secret);
  });

  test('may be sixteen, with plain names', () => {
    const some = (count: number): string =>
      Array.from(
        { length: count },
        (_, at) => `  w${at}: { url: "https://x.example/${at}", secret: ${secret} }\n`,
      ).join('');
    expect(problemsOf(() => loadYaml(`webhooks:\n${some(17)}${rest}`, {}))).toEqual([
      expect.stringContaining('expected 16 webhooks or less'),
    ]);
    expect(
      problemsOf(() =>
        loadYaml(`webhooks:\n  "a b": { url: "https://x.example", secret: ${secret} }\n${rest}`, {}),
      ),
    ).toEqual([expect.stringContaining('expected a name of 1 to 64 letters')]);
  });

  test.each(['.', '..'])(
    'are not named %s, which a client resolves in the path of the test of a webhook',
    (name) => {
      const settings = `{ url: "https://x.example", secret: ${secret} }`;
      expect(problemsOf(() => loadYaml(`webhooks:\n  "${name}": ${settings}\n${rest}`, {}))).toEqual([
        expect.stringContaining('expected a name with a letter or a digit'),
      ]);
    },
  );

  test('may have two secrets while one replaces the other, which are shown as hidden', () => {
    const both = '["${NEW}", "${OLD}"]';
    const environment = { NEW: secret, OLD: `whsec_${'A'.repeat(43)}=` };
    const config = loadYaml(
      `webhooks:\n  ops: { url: "https://x.example", secret: ${both} }\n${rest}`,
      environment,
    );
    expect(config.webhooks['ops']?.secret).toEqual([secret, `whsec_${'A'.repeat(43)}=`]);
    const shown = showConfig(config);
    expect(shown).not.toMatch(/a-secret|AAAA/);
    expect(problemsOf(() => loadYaml(shown, {}))).toEqual([]);
  });

  test('want all types unless some are listed, and are shown without their secrets', () => {
    const config = checkConfig(
      {
        webhooks: { ops: { url: `https://x.example/hook?token=${secret}`, secret } },
        events: { keyExpiring: [] },
        upstreams: { local: { url: 'http://127.0.0.1:8000/v1' } },
        models: { from: 'local' },
      },
      'the config',
    );
    expect(config.webhooks['ops']?.events).toHaveLength(6);
    expect(config.events).toEqual({ keyExpiring: [], upstreamDown: 30_000 });
    const shown = showConfig(config);
    expect(shown).not.toContain(secret);
    expect(problemsOf(() => loadYaml(shown, {}))).toEqual([]);
  });

  test.each([
    ['keyExpiring: [1s]', 'expected 1m or more'],
    ['upstreamDown: 1s', 'expected a duration from 10s to 1d'],
  ])('events: { %s } is refused: %s', (settings, problem) => {
    expect(problemsOf(() => loadYaml(`events: { ${settings} }\n${rest}`, {}))).toEqual([
      expect.stringContaining(problem),
    ]);
  });
});
