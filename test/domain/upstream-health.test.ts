import { describe, expect, test } from 'vitest';
import { createUpstreamHealth } from '../../src/domain/upstream-health.ts';
import type { AttemptResult } from '../../src/domain/attempt-result.ts';
import { failures } from '../../src/domain/failure.ts';
import type { HealthSign } from '../../src/domain/failure.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** What an attempt of some result says of its upstream: every failure with that result has to say the same. */
function signOf(result: AttemptResult): HealthSign {
  if (result === 'ok') return 'success';
  if (result === 'interrupted') return 'unknown';
  const signs = new Set(
    Object.values(failures)
      .filter((row) => row.result === result)
      .map(({ health }) => health),
  );
  const [sign] = signs;
  if (sign === undefined || signs.size > 1) throw new Error(`no one sign of ${result}`);
  return sign;
}

function setUp() {
  const clock = createFakeClock();
  const health = createUpstreamHealth(clock);
  const attempt = (result: AttemptResult, retryAfterMs: number | null = null): void =>
    health.began('a').ended(signOf(result), retryAfterMs);
  const attempts = (times: number, result: AttemptResult): void => {
    for (let time = 0; time < times; time++) attempt(result);
  };
  return { clock, health, attempt, attempts };
}

describe('an upstream', () => {
  test('that nobody has asked yet is available', () => {
    const { health } = setUp();
    expect([health.state('a'), health.availability('a')]).toEqual(['closed', 'available']);
  });

  test.each<AttemptResult>(['unreachable', 'timeout', 'error', 'invalid', 'truncated', 'auth'])(
    'is left alone after five times %s in a row, and others are not',
    (result) => {
      const { health, attempts } = setUp();
      attempts(4, result);
      expect(health.availability('a')).toBe('available');
      attempts(1, result);
      expect([health.state('a'), health.availability('a')]).toEqual(['open', 'failing']);
      expect(health.availability('b')).toBe('available');
    },
  );

  test.each<AttemptResult>(['refused', 'interrupted', 'stale'])('is not blamed for %s', (result) => {
    const { health, attempts } = setUp();
    attempts(100, result);
    expect(health.availability('a')).toBe('available');
  });

  test('is left alone when half of its last twenty attempts failed, though never five in a row', () => {
    const { health, attempt } = setUp();
    for (let time = 0; time < 19; time++) attempt(time % 2 === 0 ? 'ok' : 'error');
    expect(health.state('a')).toBe('closed');
    attempt('error');
    expect(health.state('a')).toBe('open');
  });

  test('is judged by the last half minute: old failures are forgotten', () => {
    const { clock, health, attempt } = setUp();
    for (let time = 0; time < 19; time++) attempt(time % 2 === 0 ? 'ok' : 'error');
    clock.advance(30_000);
    attempt('error');
    expect(health.state('a')).toBe('closed');
  });
});

describe('an upstream that is left alone', () => {
  test('is asked once after five seconds, and is back when that went well', () => {
    const { clock, health, attempt, attempts } = setUp();
    attempts(5, 'unreachable');
    clock.advance(4_999);
    expect(health.availability('a')).toBe('failing');
    clock.advance(1);
    expect([health.state('a'), health.availability('a')]).toEqual(['half_open', 'available']);
    const probe = health.began('a');
    expect(health.availability('a')).toBe('failing');
    probe.ended(signOf('ok'), null);
    expect([health.state('a'), health.availability('a')]).toEqual(['closed', 'available']);
    attempt('error');
    expect(health.state('a')).toBe('closed');
  });

  test('is left alone for five more when that failed', () => {
    const { clock, health, attempt, attempts } = setUp();
    attempts(5, 'unreachable');
    clock.advance(5_000);
    attempt('unreachable');
    expect(health.state('a')).toBe('open');
    clock.advance(5_000);
    expect(health.availability('a')).toBe('available');
  });

  test('is asked again, but only after a minute, when the one that should find out hangs', () => {
    const { clock, health, attempts } = setUp();
    attempts(5, 'timeout');
    clock.advance(5_000);
    health.began('a');
    clock.advance(59_999);
    expect(health.availability('a')).toBe('failing');
    clock.advance(1);
    expect(health.availability('a')).toBe('available');
  });

  test('is not judged by what was sent before: it neither closes the circuit nor keeps it open', () => {
    const { clock, health, attempts } = setUp();
    const [slow, slower] = [health.began('a'), health.began('a')];
    clock.advance(1);
    attempts(5, 'unreachable');
    slow.opened();
    expect(health.state('a')).toBe('open');
    slow.ended(signOf('ok'), null);
    expect(health.state('a')).toBe('open');
    clock.advance(4_999);
    slower.ended(signOf('timeout'), null);
    clock.advance(1);
    expect(health.state('a')).toBe('half_open');
  });

  test('is back at once when somebody had no other choice and was served', () => {
    const { clock, health, attempts, attempt } = setUp();
    attempts(5, 'unreachable');
    clock.advance(1_000);
    attempt('ok');
    expect(health.state('a')).toBe('closed');
  });
});

describe('an upstream that asks for a pause of many minutes', () => {
  const pauseMs = 600_000;

  test('is left alone for a minute, then asked by one request at a time, and used again when that one is answered', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited', pauseMs);
    clock.advance(59_999);
    expect(health.coolingMs('a')).toBe(1);
    clock.advance(1);
    expect([health.availability('a'), health.coolingMs('a')]).toEqual(['available', 0]);
    const asking = health.began('a');
    clock.advance(1);
    expect([health.availability('a'), health.coolingMs('a')]).toEqual(['cooling', 1_000]);
    asking.opened();
    expect(health.availability('a')).toBe('available');
  });

  test('is left alone for another minute when the one request is limited as well', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited', pauseMs);
    clock.advance(60_000);
    attempt('rate_limited', pauseMs - 60_000);
    expect(health.coolingMs('a')).toBe(60_000);
    clock.advance(60_000);
    expect(health.availability('a')).toBe('available');
  });

  test('is used again as its newest answer says, and when any other answer comes', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited', pauseMs);
    clock.advance(60_000);
    attempt('rate_limited', 2_000);
    clock.advance(7_000);
    for (let request = 0; request < 3; request++) {
      health.began('a');
      clock.advance(1);
      expect(health.availability('a')).toBe('available');
    }
    attempt('rate_limited', pauseMs);
    clock.advance(60_000);
    attempt('refused');
    health.began('a');
    clock.advance(1);
    expect(health.availability('a')).toBe('available');
  });

  test('is asked by another request when the first one left, or has no answer for ten seconds', () => {
    const { clock, health, attempt } = setUp();
    attempt('overloaded', pauseMs);
    clock.advance(60_000);
    attempt('interrupted');
    expect(health.availability('a')).toBe('available');
    health.began('a');
    clock.advance(9_999);
    expect(health.availability('a')).toBe('cooling');
    clock.advance(1);
    expect(health.availability('a')).toBe('available');
  });
});

describe('an upstream that limits us', () => {
  test.each<AttemptResult>(['rate_limited', 'overloaded'])(
    'by %s is left alone as long as it said, without being held for broken',
    (result) => {
      const { clock, health, attempt } = setUp();
      for (let time = 0; time < 9; time++) attempt(result, 2_000);
      expect([health.state('a'), health.availability('a')]).toEqual(['closed', 'cooling']);
      clock.advance(1_999);
      expect([health.availability('a'), health.coolingMs('a')]).toEqual(['cooling', 1]);
      clock.advance(1);
      expect([health.availability('a'), health.coolingMs('a')]).toEqual(['failing', 0]);
      clock.advance(3_000);
      expect(health.availability('a')).toBe('available');
    },
  );

  test('without saying for how long is asked last for five seconds', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited');
    clock.advance(4_999);
    expect(health.availability('a')).toBe('failing');
    clock.advance(1);
    expect(health.availability('a')).toBe('available');
  });
});

describe('an upstream whose answers break off in the middle', () => {
  test('is left alone after five in a row, though each of them began well', () => {
    const { health } = setUp();
    for (let time = 0; time < 5; time++) {
      const attempt = health.began('a');
      attempt.opened();
      attempt.ended(signOf('truncated'), null);
    }
    expect(health.state('a')).toBe('open');
  });

  test('is left alone when nine of ten do', () => {
    const { health } = setUp();
    for (let time = 0; time < 40 && health.state('a') === 'closed'; time++) {
      const attempt = health.began('a');
      attempt.opened();
      attempt.ended(signOf(time % 3 === 0 ? 'ok' : 'truncated'), null);
    }
    expect(health.state('a')).toBe('open');
  });

  test('is used again as soon as one begins after it was left alone', () => {
    const { clock, health, attempts } = setUp();
    attempts(5, 'unreachable');
    clock.advance(5_000);
    health.began('a').opened();
    expect(health.state('a')).toBe('closed');
  });
});

describe('probes', () => {
  test('that fail leave an upstream alone, and one that goes well brings it back', () => {
    const { clock, health } = setUp();
    for (let time = 0; time < 5; time++) health.probed('a').ended(signOf('unreachable'), null);
    expect([health.state('a'), health.availability('a')]).toEqual(['open', 'failing']);
    clock.advance(1);
    health.probed('a').ended(signOf('ok'), null);
    expect([health.state('a'), health.availability('a')]).toEqual(['closed', 'available']);
  });

  test('that go well do not make up for requests that failed: a list of models is no answer', () => {
    const { health, attempt, attempts } = setUp();
    attempts(4, 'timeout');
    health.probed('a').ended(signOf('ok'), null);
    attempt('timeout');
    expect(health.state('a')).toBe('open');
    health.probed('a').ended(signOf('ok'), null);
    expect(health.state('a')).toBe('open');
  });
});
