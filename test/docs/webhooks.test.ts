import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { describedEvents } from '../../src/domain/events.ts';
import { signatureHeaders } from '../../src/shared/webhook-signature.ts';
import { compareSection } from '../support/generated-section.ts';
import { blocksOf } from '../support/page-blocks.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const page = 'docs/operators/webhooks.md';

test('the table of events has every type', () => {
  const rows = Object.entries(describedEvents).map(
    ([type, { when, data }]) => `| \`${type}\` | ${when} | ${data} |`,
  );
  const table = ['| type | when it comes | `data` |', '|---|---|---|', ...rows].join('\n');
  const { wanted, found } = compareSection('events', table);
  expect(found).toBe(wanted);
});

const secret = `whsec_${Buffer.from('thirty-two bytes of some secret.').toString('base64')}`;
const plain = 'a secret that is no base64';
const body = JSON.stringify({ id: 'evt_1', data: { name: 'Zoë' } });
const nowSeconds = Math.floor(Date.now() / 1_000);

/** Requests, with whether they are to be accepted. */
function requests() {
  const signed = (key: string, timestamp = nowSeconds) => ({
    secret: key,
    headers: signatureHeaders([key], { id: 'evt_1', timestamp, body }),
    body,
  });
  const own = signed(secret);
  const both = {
    headers: signatureHeaders([plain, secret], { id: 'evt_1', timestamp: nowSeconds, body }),
    body,
  };
  const { headers } = own;
  const withVersion = (version: string) => headers['webhook-signature'].replace('v1', version);
  return [
    { request: own, isOurs: true },
    { request: signed(plain), isOurs: true },
    // While one secret replaces the other, with either of them.
    { request: { ...both, secret }, isOurs: true },
    { request: { ...both, secret: plain }, isOurs: true },
    { request: { ...both, secret: 'another secret' }, isOurs: false },
    { request: { ...own, secret: plain }, isOurs: false },
    { request: { ...own, body: body.replace('Zoë', 'Zoe') }, isOurs: false },
    { request: { ...own, headers: { ...headers, 'webhook-id': 'evt_2' } }, isOurs: false },
    {
      request: { ...own, headers: { ...headers, 'webhook-timestamp': String(nowSeconds + 1) } },
      isOurs: false,
    },
    { request: { ...own, headers: { ...headers, 'webhook-signature': 'v1,' } }, isOurs: false },
    { request: { ...own, headers: { ...headers, 'webhook-signature': '' } }, isOurs: false },
    { request: { ...own, headers: { ...headers, 'webhook-signature': 'v1,é  ÿ v2,x' } }, isOurs: false },
    {
      request: { ...own, headers: { ...headers, 'webhook-signature': withVersion('v2') } },
      isOurs: false,
    },
    { request: { ...own, headers: {} }, isOurs: false },
    ...['', 'now', '²', `${nowSeconds}.5`, '9'.repeat(5_000), '-1', 'NaN'].map((timestamp) => ({
      request: { ...own, headers: { ...headers, 'webhook-timestamp': timestamp } },
      isOurs: false,
    })),
    // Recorded on the way, and sent again later.
    { request: signed(secret, nowSeconds - 400), isOurs: false },
    { request: signed(secret, nowSeconds + 400), isOurs: false },
  ];
}

/** How each script is run over a list of requests in JSON: it prints a list of the events, or null. */
const runners: Readonly<Record<string, readonly [program: string, runner: string, text: string]>> = {
  'verify.mjs': [
    process.execPath,
    'run.mjs',
    `import { readFileSync } from 'node:fs';
     import { verify } from './verify.mjs';
     const requests = JSON.parse(readFileSync(process.argv[2], 'utf8'));
     console.log(JSON.stringify(requests.map(({ secret, headers, body }) => verify(secret, headers, body))));`,
  ],
  'verify.py': [
    process.env['PYTHON'] ?? 'python3',
    'run.py',
    [
      'import json, sys',
      'from verify import verify',
      'requests = json.load(open(sys.argv[1], encoding="utf8"))',
      'print(json.dumps([verify(r["secret"], r["headers"], r["body"].encode()) for r in requests]))',
    ].join('\n'),
  ],
};

const scripts = blocksOf(page, 'js', 'python').map(
  ({ text }) => [/^(?:\/\/|#) (\S+)\n/.exec(text)?.[1] ?? '', text] as const,
);

describe('the verification of a request', () => {
  test('is shown in each language', () => {
    expect(scripts.map(([name]) => name)).toEqual(Object.keys(runners));
  });

  test.each(scripts)(
    '%s accepts what the gateway signs, and nothing that was changed or is old',
    async (name, text) => {
      const [program, runner, runnerText] = runners[name] ?? ['', '', ''];
      const folder = makeTemporaryFolder();
      writeFileSync(join(folder, name), text);
      writeFileSync(join(folder, runner), runnerText);
      const all = requests();
      writeFileSync(join(folder, 'requests.json'), JSON.stringify(all.map(({ request }) => request)));
      const { stdout } = await run(program, [runner, 'requests.json'], { cwd: folder });
      expect(JSON.parse(stdout)).toEqual(all.map(({ isOurs }) => (isOurs ? JSON.parse(body) : null)));
    },
  );
});
