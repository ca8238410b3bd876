import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { UpstreamAnswer, UpstreamFault, Upstreams } from '../../src/domain/ports/upstreams.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import { probeUpstreams } from '../../src/background/probe-upstreams.ts';
import { localTarget } from '../support/call-target.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { bodyOf } from '../support/body-of.ts';

type Answer = UpstreamAnswer | UpstreamFault;

function setUp(answer: () => Answer | Promise<Answer>) {
  const clock = createFakeClock();
  const health = new UpstreamHealth(clock);
  const asked: string[] = [];
  const upstreams: Upstreams = {
    async call({ upstream, method, path }, signal) {
      asked.push(`${method} ${upstream} ${path}`);
      const cut = new Promise<Answer>((resolve) =>
        signal.addEventListener('abort', () => resolve({ kind: 'fault', fault: 'interrupted' })),
      );
      return Promise.race([answer(), cut]);
    },
  };
  const changes: (string | null)[] = [];
  const probe = { upstream: 'a', target: localTarget(), path: '/models', intervalMs: 10_000 };
  const stop = probeUpstreams([probe], {
    upstreams,
    health,
    clock,
    onChange: (_upstream, cause) => void changes.push(cause),
  });
  const pass = async (durationMs: number): Promise<void> => {
    clock.advance(durationMs);
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  };
  return { clock, health, asked, changes, stop, pass };
}

const answerWith = (status: number): UpstreamAnswer => ({
  kind: 'answer',
  status,
  contentType: '',
  retryAfterMs: null,
  ...bodyOf(async () => null),
  release: () => {},
});

test.each<[string, () => Answer]>([
  ['can’t be reached', () => ({ kind: 'fault', fault: 'unreachable' })],
  ['answers 500', () => answerWith(500)],
  ['refuses our key', () => answerWith(401)],
])('an upstream that %s is found to fail before a request is sent to it', async (_name, answer) => {
  const { health, asked, stop, pass } = setUp(answer);
  for (let time = 0; time < 5; time++) await pass(10_000);
  expect(asked).toEqual(Array.from({ length: 5 }, () => 'GET a /models'));
  expect(health.state('a')).toBe('open');
  stop();
});

test('a probe of an upstream that hangs ends after five seconds', async () => {
  const { health, stop, pass } = setUp(() => new Promise(() => {}));
  for (let time = 0; time < 5; time++) {
    await pass(10_000);
    await pass(5_000);
  }
  expect(health.state('a')).toBe('open');
  stop();
});

test('a probe closes the circuit of an upstream that answers again, without any request', async () => {
  let status = 500;
  const { health, stop, pass } = setUp(() => answerWith(status));
  for (let time = 0; time < 5; time++) await pass(10_000);
  expect(health.state('a')).toBe('open');
  status = 404;
  await pass(10_000);
  expect(health.state('a')).toBe('closed');
  stop();
});

test('probes end when they are stopped, and leave no timer behind', async () => {
  const { clock, asked, stop, pass } = setUp(() => answerWith(200));
  await pass(10_000);
  stop();
  await pass(100_000);
  expect([asked.length, clock.scheduled]).toEqual([1, 0]);
});

test('a failed probe’s cause is reported once until it changes, and its end', async () => {
  let answer: Answer = { kind: 'fault', fault: 'unreachable', code: 'ECONNREFUSED' };
  const { health, changes, stop, pass } = setUp(() => answer);
  await pass(10_000);
  await pass(10_000);
  expect(changes).toEqual([
    'GET http://127.0.0.1:8000/v1/models: connection refused. Start the server, or correct the host and port of ' +
      'upstreams.local.url (in a container, 127.0.0.1 is the container itself).',
  ]);
  expect(health.contact('a')).toMatchObject({ cause: changes[0] });
  answer = answerWith(401);
  await pass(10_000);
  expect(changes[1]).toContain('the API key is not accepted (status 401). Correct upstreams.local.apiKey.');
  answer = answerWith(200);
  await pass(10_000);
  await pass(10_000);
  expect(changes.slice(2)).toEqual([null]);
  expect(health.contact('a')).toMatchObject({ cause: null });
  stop();
});

test('a kept connection that the upstream closed is no news', async () => {
  const { health, changes, stop, pass } = setUp(() => ({ kind: 'fault', fault: 'stale' }));
  await pass(10_000);
  expect([changes, health.contact('a')]).toEqual([[], null]);
  stop();
});
