import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { plant } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const [first, second, whispered] = ['token-number-one-of-two', 'token-number-two-of-two', 'secret-of-stderr'];
plant(first, second, whispered);

let folder: string;
let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let log: string;

/** Has the program do something else from now on: lines of a shell. */
function program(...lines: readonly string[]): void {
  const count = `echo run >> ${join(folder, 'runs')}`;
  writeFileSync(join(folder, 'token'), ['#!/bin/sh', count, ...lines, ''].join('\n'));
  chmodSync(join(folder, 'token'), 0o755);
}

const runs = (): number => readFileSync(join(folder, 'runs'), 'utf8').split('\n').length - 1;
const configOf = (apiKey: object) => ({
  upstreams: { local: { url: upstream.url, apiKey: apiKey as { command: string[] } } },
  models: { small: { routes: [{ upstream: 'local', model: 'tiny' }], free: true as const } },
});

beforeEach(async () => {
  folder = makeTemporaryFolder();
  clock = createFakeClock();
  upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  log = '';
  program(`echo "${first} $1" | tr -d ' '`);
  gateway = await startGateway({
    clock,
    logDestination: { write: (line) => void (log += line) },
    upstreams: {
      local: { url: upstream.url, apiKey: { command: [join(folder, 'token'), '; exit 1'], every: '1m' } },
    },
  });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

async function ask(): Promise<number> {
  const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
  const response = await gateway.post('/v1/chat/completions', body);
  await response.text();
  return response.status;
}

/** The key of a request. */
async function sentKey(): Promise<unknown> {
  await ask();
  return upstream.seen.at(-1)?.headers.authorization;
}

/** Lets time pass until something holds. */
const passUntil = (what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> =>
  eventually(what, async () => {
    clock.advance(15_000);
    return isTrue();
  });

describe('an API key that a command prints', () => {
  test('is sent, from a program that is run without a shell', async () => {
    expect(await sentKey()).toBe(`Bearer ${first};exit1`);
    expect(runs()).toBe(1);
  });

  test('is printed anew before its time is over, and not at each look', async () => {
    program(`echo ${second}`);
    clock.advance(15_000);
    await ask();
    expect(runs()).toBe(1);
    let looks = 0;
    await passUntil('the key is another one', async () => {
      looks++;
      return (await sentKey()) === `Bearer ${second}`;
    });
    // One that starts slowly is given up by the clock, and runs again.
    expect(runs()).toBeGreaterThan(1);
    expect(runs()).toBeLessThan(3 + looks / 2);
  });

  test('is printed anew when the upstream refuses it, but no more often than every ten seconds', async () => {
    program(`echo ${second}`);
    upstream.play((response) => void response.writeHead(401).end());
    clock.advance(10_000);
    expect(await ask()).toBe(502);
    upstream.play(sayTexts(['x']));
    await eventually('the key is another one', async () => (await sentKey()) === `Bearer ${second}`);
    expect(runs()).toBe(2);
    upstream.play((response) => void response.writeHead(401).end());
    for (let times = 0; times < 3; times++) await ask();
    expect(runs()).toBe(2);
    expect(log).toContain('Correct what the command of upstreams.local.apiKey prints.');
  });

  test('is printed anew when it is refused on a passthrough path', async () => {
    const same = { command: [join(folder, 'token'), '; exit 1'], every: '1m' };
    gateway.gateway.reload({ ...configOf(same), passthrough: [{ path: '/tokenize', upstream: 'local' }] });
    program(`echo ${second}`);
    upstream.play((response) => void response.writeHead(401).end());
    clock.advance(10_000);
    expect((await gateway.post('/tokenize', {})).status).toBe(502);
    upstream.play(sayTexts(['x']));
    await eventually('the key is another one', async () => (await sentKey()) === `Bearer ${second}`);
  });

  test.each([
    ['fails', ['exit 3'], 'the command ended with the exit code 3'],
    ['is killed', ['kill -9 $$'], 'the command was ended by SIGKILL'],
    ['prints nothing', ['true'], 'the command printed nothing'],
    ['prints two lines', [`echo ${second}`, 'echo more'], 'more than one line of printable ASCII'],
    ['prints too much', ['yes', 'true'], 'the command printed more than 16384 bytes'],
  ])('stays in use when the command %s, which the log has once', async (_how, lines, reason) => {
    program(`echo ${whispered} >&2`, ...lines);
    await passUntil('it is reported', () => log.includes(reason));
    const before = runs();
    await passUntil('it is tried again', () => runs() > before + 1);
    expect(await sentKey()).toBe(`Bearer ${first};exit1`);
    expect(log.split('the command of an API key has failed: the last key stays in use')).toHaveLength(2);
    expect(log).toContain('"upstream":"local"');
    program(`echo ${second}`);
    await passUntil('it works again', () => log.includes('the command of an API key works again'));
    expect(await sentKey()).toBe(`Bearer ${second}`);
    expect(log).not.toMatch(/token-number|secret-of-stderr/);
  });

  test('of a program that never ends is given up, and what the program has started is killed with it', async () => {
    const pid = join(folder, 'pid');
    program(`sleep 1000 & echo $! > ${pid}`, 'wait');
    gateway.gateway.reload(
      configOf({ command: [join(folder, 'token'), '; exit 1'], every: '1m', timeout: '300ms' }),
    );
    await passUntil('it is reported', () => log.includes('the command took longer than 300 ms'));
    const isAlive = (): boolean => {
      try {
        return readFileSync(`/proc/${readFileSync(pid, 'utf8').trim()}/stat`, 'utf8').split(' ')[2] !== 'Z';
      } catch {
        return false;
      }
    };
    await eventually('nothing of it is left', () => !isAlive());
    expect(await sentKey()).toBe(`Bearer ${first};exit1`);
  });

  test('is kept by a reload that names the same command, and is a fault of one whose command fails', async () => {
    const same = { command: [join(folder, 'token'), '; exit 1'], every: '2m' };
    gateway.gateway.reload(configOf(same));
    expect(runs()).toBe(1);
    expect(await sentKey()).toBe(`Bearer ${first};exit1`);
    program('exit 4');
    expect(() => gateway.gateway.reload(configOf({ command: [join(folder, 'token')] }))).toThrow(
      'upstreams.local.apiKey.command: the command ended with the exit code 4',
    );
    expect(() => gateway.gateway.reload(configOf({ command: ['/nowhere/token'] }))).toThrow(
      'upstreams.local.apiKey.command: there is no such program',
    );
    expect(await sentKey()).toBe(`Bearer ${first};exit1`);
  });

  test('finds no variable of the gateway in its environment', async () => {
    process.env['TEXTGATE_TEST_SECRET'] = whispered;
    try {
      program('echo "key-$TEXTGATE_TEST_SECRET-$HOME"');
      gateway.gateway.reload(configOf({ command: [join(folder, 'token'), 'other'] }));
    } finally {
      delete process.env['TEXTGATE_TEST_SECRET'];
    }
    expect(await sentKey()).toBe(`Bearer key--${process.env['HOME'] ?? ''}`);
  });
});
