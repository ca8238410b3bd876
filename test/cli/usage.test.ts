import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createKey, showKey, updateKey } from '../../src/cli/keys/keys.ts';
import { createProgram } from '../../src/cli/program.ts';
import { showRequest } from '../../src/cli/requests/show-request.ts';
import { showUsage } from '../../src/cli/requests/usage.ts';
import type { UsageOptions } from '../../src/cli/requests/usage.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { runCommand } from '../support/run-command.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['a']));
  gateway = await startGateway({
    upstreamUrl: upstream.url,
    price: { input: '100000', output: '2' },
    passthrough: [{ path: '/tokenize', upstream: 'local', price: { request: '0.5' } }],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  vi.stubEnv('TEXTGATE_ADMIN_URL', gateway.adminUrl);
  vi.stubEnv('TEXTGATE_ADMIN_TOKEN', gateway.adminToken);
});
afterEach(() => vi.unstubAllEnvs());

describe('textgate usage', () => {
  test('says so when there were no requests', async () => {
    expect(await showUsage({})).toMatch(/^no requests from \d{4}-\d\d-\d\d \(UTC\)$/);
  });

  describe('after requests', () => {
    beforeAll(async () => {
      const messages = [{ role: 'user', content: 'x' }];
      for (const [path, body] of [
        ['/v1/chat/completions', { model: 'small', messages }],
        ['/v1/chat/completions', { model: 'small', messages, stream: true }],
        ['/tokenize', { text: 'x' }],
      ] as const)
        await (await gateway.post(path, body)).text();
      await gateway.recorded();
    });

    test('prints a table with exact totals, and the time that it is about', async () => {
      const lines = (await showUsage({ by: ['model'] })).split('\n');
      expect(lines.slice(0, 4)).toEqual([
        'MODEL      REQUESTS  IN  CACHED  OUT    CHARGE',
        '/tokenize         1   0       0    0      0.50',
        'small             2  22       0   14  2.200028',
        'total             3  22       0   14  2.700028',
      ]);
      expect(lines[4]).toMatch(/^from \d{4}-\d\d-\d\d \(UTC\); charges in USD$/);
    });

    test.each<[UsageOptions, RegExp]>([
      [{}, /^DAY \(UTC\) .*\n\d{4}-\d\d-\d\d +3 +22 +0 +14 +2\.700028\nfrom/],
      [{ by: [] }, /^REQUESTS .*\n +3 /],
      [{ by: ['hour'] }, /^HOUR \(UTC\) .*\n\d{4}-\d\d-\d\d \d\d:00 +3 /],
      [{ by: ['key', 'upstream'], model: 'small' }, /^KEY .*\ntest +local +2 /],
      [{ by: ['tag'], key: 'test' }, /^TAG .*\n- +3 /],
      [{ from: '2001-01-01', to: '2001-02-01' }, /^no requests from 2001-01-01 to 2001-02-01 \(UTC\)$/],
    ])('with %j prints what was asked for', async (options, printed) => {
      expect(await showUsage(options)).toMatch(printed);
    });

    test('prints CSV and JSON', async () => {
      const sums =
        'requests,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens,charge';
      expect(await showUsage({ by: ['tag'], csv: true })).toBe(`tag,${sums}\r\n,3,22,0,0,14,0,2.700028`);
      const [row] = JSON.parse(await showUsage({ by: ['outcome'], tag: '', json: true })) as object[];
      expect(Object.keys(row ?? {})).toEqual(['outcome', ...sums.split(',')]);
      expect(row).toMatchObject({ outcome: 'completed', requests: 3, charge: '2.700028' });
    });

    test.each<[UsageOptions, string]>([
      [
        { by: ['week'] },
        '--by: expected groups among hour, day, month, key, group, model, upstream, outcome, tag',
      ],
      [{ from: '2030-01-01T00:30:00Z' }, '--from: expected a whole hour'],
      [{ model: 'smal' }, 'no request has the model smal; did you mean small?'],
      [{ upstream: 'loca', json: true }, 'no request has the upstream loca; did you mean local?'],
      [{ tag: 'search' }, 'no request has the tag search'],
      [{ group: 'team-a' }, 'no request has the group team-a'],
      [{ month: '2030' }, '--month: expected a month such as 2030-01, got 2030'],
      [{ month: '2030-13' }, '--month: expected a month such as 2030-01, got 2030-13'],
      [{ month: '2030-01', to: '2030-02-01' }, 'give the time once: --month, or --from and --to'],
      [{ key: 'tets' }, 'no key has the id or name tets; did you mean test?'],
    ])('fails for %j, and names the option or the nearest name', async (options, message) => {
      await expect(showUsage(options)).rejects.toThrow(message);
    });
  });

  test('is a command with these options, and fails with one line', async () => {
    const environment = { TEXTGATE_ADMIN_URL: gateway.adminUrl, TEXTGATE_ADMIN_TOKEN: gateway.adminToken };
    const args = ['usage', '--by', 'day, week', '--tag', '', '--csv'];
    const { code, stdout, stderr } = await runCommand(args, undefined, environment);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^textgate: --by: expected groups among .*\n$/);
    const found = createProgram().commands.find((command) => command.name() === 'usage');
    expect(found?.options.map(({ long }) => long)).toEqual([
      '--by',
      '--from',
      '--to',
      '--month',
      '--key',
      '--group',
      '--model',
      '--upstream',
      '--outcome',
      '--tag',
      '--csv',
      '--json',
    ]);
  });
});

test('textgate show prints the tag of a request', async () => {
  const { secret } = await gateway.gateway.createKey('tagged', { tags: ['search'] });
  const body = { model: 'small', input: 'x' };
  const headers = { authorization: `Bearer ${secret}`, 'x-textgate-tag': 'search' };
  const answer = await gateway.post('/v1/responses', body, { headers });
  await answer.text();
  expect(await showRequest(answer.headers.get('x-request-id') ?? '', {})).toMatch(/^tag +search$/m);
});

test('textgate keys sets, shows and removes tags', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const shown = async () => /^tags +(.*)$/m.exec(await showKey('bob', {}))?.[1];
  await createKey('bob', { tags: ['search', 'chat:2'] });
  expect(await shown()).toBe('search, chat:2');
  await updateKey('bob', { tags: ['other'] });
  expect(await shown()).toBe('other');
  await updateKey('bob', { tags: [] });
  expect(await shown()).toBe('none');
  await expect(updateKey('bob', { tags: ['a b'] })).rejects.toThrow('--tags: expected letters, digits');
  vi.restoreAllMocks();
});
