import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { reconcile } from '../../../src/cli/reconcile/reconcile.ts';
import type { ReconcileOptions } from '../../../src/cli/reconcile/reconcile.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { startGateway } from '../../support/test-gateway.ts';
import type { TestGateway } from '../../support/test-gateway.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { runCommand } from '../../support/run-command.ts';

/** How long a test may take, in milliseconds: processes start one after another. */
const patienceMs = 60_000;

const price = { input: '1000', output: '2000' };
const day = new Date().toISOString().slice(0, 10);

/** Noon of that day: the tests may run over midnight. */
const clock = createFakeClock(Date.parse(day) + 43_200_000);

let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ upstreamUrl: upstream.url, price, clock });
  const ask = async (stream: boolean) => {
    const body = { model: 'small', stream, messages: [{ role: 'user', content: 'hi' }] };
    // A stream that breaks off has no end.
    await (await gateway.post('/v1/chat/completions', body)).text().catch(() => '');
  };
  upstream.play(sayTexts(['one']));
  for (const stream of [true, false, true]) await ask(stream);
  const [opening = '', text = ''] = chatFrames(['one']);
  upstream.play((response) => {
    sendStream(response, []).write(opening + text, () => cut(response, 'rst'));
  });
  await ask(true);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Runs `textgate reconcile` with a file of this text. */
async function run(text: string, args: readonly string[] = ['--upstream', 'local'], environment = {}) {
  const folder = makeTemporaryFolder();
  writeFileSync(join(folder, 'usage.csv'), text);
  return runCommand(['reconcile', 'usage.csv', ...args], folder, {
    TEXTGATE_ADMIN_URL: gateway.adminUrl,
    TEXTGATE_ADMIN_TOKEN: gateway.adminToken,
    ...environment,
  });
}

const head = 'date,model,requests,input_tokens,output_tokens,cost\n';

describe('textgate reconcile', { timeout: patienceMs }, () => {
  test('exits with 0 where the export and the records agree, and says what it can not compare', async () => {
    const { code, stdout, stderr } = await run(`${head}${day},tiny,3,33,21,0.07\n`);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^the plain export and the records of local agree within 1%: 1 pair of a day and a model/,
    );
    expect(stdout).toMatch(/^input tokens +33 +33 +0 \(0\.0%\)$/m);
    expect(stdout).toMatch(/^USD \(cost; charged to keys\) +0\.07 +0\.\d+$/m);
    expect(stdout).toContain('note: 1 attempt at local without usage (broken off, timed out or not counted)');
    expect(stdout).toContain('note: the last day is not over');
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  test('exits with 1 where they differ, and names the day, the model and what differs', async () => {
    const { code, stdout } = await run(`${head}${day},tiny,3,36,21,0\n`);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^the plain export and the records of local differ by more than 1%: 1 of 1 pair of/,
    );
    expect(stdout).toMatch(new RegExp(`^${day} +tiny +input tokens +36 +33 +\\+3 \\(9\\.1%\\)$`, 'm'));
    expect(stdout.match(/ tiny /g)).toHaveLength(1);
  });

  test('names a model that only the export has, and the option if it is another name of ours', async () => {
    const text = `${head}${day},tiny-2030-01-01,3,33,21,0\n`;
    const apart = await run(text);
    expect(apart.code).toBe(1);
    expect(apart.stdout.replaceAll('\n', ' ')).toContain('if it is tiny: --map tiny-2030-01-01=tiny');
    const mapped = await run(text, ['--upstream', 'local', '--map', 'tiny-2030-01-01=tiny', '--json']);
    expect(mapped.code).toBe(0);
    const found = JSON.parse(mapped.stdout) as object;
    expect(found).toMatchObject({
      upstream: 'local',
      format: 'plain',
      from: day,
      agrees: true,
      lines: [
        {
          day,
          model: 'tiny',
          agrees: true,
          differs: [],
          export: { requests: 3, input_tokens: 33, output_tokens: 21, cost: '0.00' },
          records: { requests: 3, input_tokens: 33, output_tokens: 21, without_usage: 1, refused: 0 },
        },
      ],
      rows: 1,
      records: 4,
    });
  });

  test('compares the days that are given, and says which rows are outside of them', async () => {
    const args = ['--upstream', 'local', '--from', '2030-01-01', '--to', '2030-01-03', '--tolerance', '0%'];
    const { code, stdout } = await run(`${head}${day},tiny,3,33,21,0\n`, args);
    expect(code).toBe(0);
    expect(stdout).toContain('outside of the days: 1 pair of a day and a model in the export');
  });

  test('suggests the name of a misspelt upstream', async () => {
    const { code, stdout } = await run(`${head}${day},tiny,3,33,21,0\n`, ['--upstream', 'locl']);
    expect(code).toBe(1);
    expect(stdout).toContain('no record of these days has the upstream locl; did you mean local?');
  });

  test.each<[string, Partial<ReconcileOptions>, string]>([
    ['a file without a row of its format', {}, ': an export of the format plain needs model'],
    ['a tolerance without a unit', { tolerance: '1' }, '--tolerance: expected a share'],
    ['a day that is none', { from: 'today' }, '--from: expected a day'],
    ['a pair of names without both', { map: ['a='] }, '--map: expected'],
    ['an unknown time zone', { timeZone: 'x' }, '--time-zone: x is no time zone'],
  ])('exits with 2 for %s', async (_, options, message) => {
    const file = join(makeTemporaryFolder(), 'usage.csv');
    writeFileSync(file, 'date,input_tokens,output_tokens\n');
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => {
      printed.mockRestore();
      process.exitCode = undefined;
    });
    await reconcile(file, { upstream: 'local', ...options });
    expect(process.exitCode).toBe(2);
    expect(String(printed.mock.calls[0])).toContain(message);
  });

  test('exits with 2 without an upstream', async () => {
    const { code, stderr } = await run('date,input_tokens,output_tokens\n', []);
    expect(code).toBe(2);
    expect(stderr).toContain("required option '--upstream <name>' not specified");
  });

  test('exits with 3 if the gateway does not answer', async () => {
    const { code, stderr } = await run(`${head}${day},tiny,3,33,21,0\n`, ['--upstream', 'local'], {
      TEXTGATE_ADMIN_URL: 'http://127.0.0.1:1',
    });
    expect(code).toBe(3);
    expect(stderr).toContain('the gateway does not answer');
  });
});

test('a list of records of two pages is read to its end', { timeout: patienceMs }, async () => {
  const many = await startGateway({
    upstreamUrl: upstream.url,
    clock,
    limits: { requestsPerMinute: 10_000 },
  });
  onTestFinished(() => many.close());
  upstream.play(sayTexts(['one']));
  const body = { model: 'small', messages: [{ role: 'user', content: 'hi' }] };
  const asked = 201;
  for (let request = 0; request < asked; request++)
    await (await many.post('/v1/chat/completions', body)).text();
  const { code, stdout } = await run(
    `${head}${day},tiny,${asked},${asked * 11},${asked * 7},0\n`,
    ['--upstream', 'local', '--tolerance', '0%', '--json'],
    { TEXTGATE_ADMIN_URL: many.adminUrl },
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ records: asked, agrees: true });
});
