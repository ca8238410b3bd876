import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { composeGateway } from '../../src/gateway.ts';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const [first, second] = ['token-number-one-of-two', 'token-number-two-of-two'];
plant(first, second);

let file: string;
let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let log: string;

beforeEach(async () => {
  file = join(makeTemporaryFolder(), 'token');
  writeFileSync(file, `${first}\n`);
  clock = createFakeClock();
  upstream = await startUpstream();
  const say = sayTexts(['x']);
  upstream.play((response, request) =>
    request.body === '' ? void response.end('{"data":[]}') : say(response, request),
  );
  log = '';
  gateway = await startGateway({
    clock,
    logDestination: { write: (line) => void (log += line) },
    upstreams: {
      local: { url: upstream.url, apiKey: { file }, probe: { interval: '1h' } },
      native: { url: upstream.url, apiKey: { file }, dialects: ['anthropic'] },
    },
    routes: [{ upstream: 'local', model: 'tiny' }],
    passthrough: [{ path: '/tokenize', upstream: 'native', free: true }],
  });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

/** The keys that the upstream got since the last look. */
const seenKeys = (): readonly unknown[] =>
  upstream.seen.splice(0).map(({ headers }) => headers.authorization ?? headers['x-api-key']);

async function ask(): Promise<void> {
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  await (await gateway.post('/v1/chat/completions', body)).text();
  await (await gateway.post('/tokenize', {})).text();
}

/** Asks until both kinds of request have the other key. */
async function untilKeyIs(token: string): Promise<void> {
  await eventually(`the key is ${token}`, async () => {
    clock.advance(2_000);
    seenKeys();
    await ask();
    return upstream.seen.every(({ headers }) => JSON.stringify(headers).includes(token));
  });
}

describe('an API key in a file', () => {
  test('is sent by requests, probes and passthrough paths, each in the form of its dialect', async () => {
    await ask();
    expect(seenKeys()).toEqual([`Bearer ${first}`, first]);
    clock.advance(3_600_000);
    await eventually('the probe has come', () => upstream.seen.length > 0);
    expect(seenKeys()).toEqual([`Bearer ${first}`]);
  });

  test('is replaced without a restart, as soon as its file is', async () => {
    writeFileSync(`${file}.new`, second);
    renameSync(`${file}.new`, file);
    await untilKeyIs(second);
    expect(seenKeys()).toEqual([`Bearer ${second}`, second]);
  });

  test('that the upstream refuses is to be corrected in its file, says the log', async () => {
    upstream.play((response) => void response.writeHead(401).end());
    await ask();
    await eventually('it is reported', () => log.includes('upstream rejected its API key'));
    expect(log).toContain(`Correct the file ${file} (upstreams.local.apiKey)`);
  });

  test('stays in use when its file is gone or empty, which the log has once per upstream', async () => {
    rmSync(file);
    await eventually('it is reported', () => {
      clock.advance(2_000);
      return log.split('the last key stays in use').length === 3;
    });
    expect(log).toContain('"upstream":"local"');
    writeFileSync(file, '\n');
    for (let times = 0; times < 5; times++) {
      clock.advance(2_000);
      await ask();
    }
    expect(new Set(seenKeys())).toEqual(new Set([`Bearer ${first}`, first]));
    expect(log.split('the last key stays in use')).toHaveLength(3);
    writeFileSync(file, second);
    await untilKeyIs(second);
    expect(log).toContain('the file of an API key can be read again');
    expect(log).not.toMatch(/token-number/);
  });

  test('is a fault of the config when it can not be read at a reload, which keeps the old one', async () => {
    const config = {
      upstreams: { local: { url: upstream.url, apiKey: { file: '/nowhere/token' } } },
      models: { from: 'local' },
    };
    expect(() => gateway.gateway.reload(config)).toThrow(
      /upstreams\.local\.apiKey\.file: there is no such file/,
    );
    await ask();
    expect(seenKeys()).toEqual([`Bearer ${first}`, first]);
  });
});

describe('an API key in a file that disappears after the config was checked', () => {
  const configOf = (folder: string) =>
    checkConfig(
      {
        server: { port: 0 },
        admin: { port: 0 },
        storage: { url: `sqlite:${join(folder, 'textgate.db')}` },
        upstreams: {
          one: { url: upstream.url, apiKey: { file } },
          two: { url: upstream.url, apiKey: { file: `${file}-2` } },
        },
        models: { from: 'one' },
      },
      'the config',
    );

  test('leaves no timer behind when it makes a reload fail', async () => {
    writeFileSync(`${file}-2`, second);
    const config = configOf(makeTemporaryFolder());
    const reloaded = composeGateway(config, { clock, logLevel: 'silent' });
    rmSync(`${file}-2`);
    const before = clock.scheduled;
    expect(() => reloaded.replaceConfig(config)).toThrow('upstreams.two.apiKey.file: there is no such file');
    expect(clock.scheduled).toBe(before);
    await reloaded.close();
  });

  test('opens neither a timer nor the database when it makes the start fail', async () => {
    writeFileSync(`${file}-2`, second);
    const config = configOf(makeTemporaryFolder());
    rmSync(`${file}-2`);
    const before = clock.scheduled;
    expect(() => composeGateway(config, { clock, logLevel: 'silent' })).toThrow(
      'upstreams.two.apiKey.file: there is no such file',
    );
    expect(clock.scheduled).toBe(before);
    writeFileSync(`${file}-2`, second);
    const started = composeGateway(config, { clock, logLevel: 'silent' });
    await started.listen();
    await started.close();
  });
});

test('models are discovered with an API key in a file', async () => {
  upstream.play((response) => void response.end('{"data":[{"id":"listed"}]}'));
  gateway.gateway.reload({
    upstreams: { local: { url: upstream.url, apiKey: { file } } },
    models: { from: 'local' },
  });
  expect(await gateway.gateway.modelNames()).toEqual(['listed']);
  expect(seenKeys()).toEqual([`Bearer ${first}`]);
});
