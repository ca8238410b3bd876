import { describe, expect, test } from 'vitest';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import type { AttemptResult } from '../../src/domain/money/consumption.ts';
import { failures } from '../../src/domain/upstreams/failure.ts';
import type { HealthSign } from '../../src/domain/upstreams/failure.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const a = { upstream: 'a', model: 'm' };
const b = { upstream: 'b', model: 'm' };

/** The health sign of an attempt's result: every failure with that result must have the same sign. */
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
  const health = new UpstreamHealth(clock);
  const attempt = (result: AttemptResult, retryAfterMs: number | null = null): void =>
    health.began(a, null).ended(signOf(result), retryAfterMs);
  const attempts = (times: number, result: AttemptResult): void => {
    for (let time = 0; time < times; time++) attempt(result);
  };
  return { clock, health, attempt, attempts };
}

describe('the latest contact with an upstream', () => {
  test('is unknown at first, and what the last request or probe has shown after that', () => {
    const { health } = setUp();
    expect(health.contact('a')).toBeNull();
    health.began(a, null).ended('failure', null, 'refused');
    expect(health.contact('a')).toMatchObject({ cause: 'refused' });
    health.probed('a').ended('success', null);
    expect(health.contact('a')).toMatchObject({ cause: null });
    health.began(a, null).ended('busy', 1_000, 'too many');
    health.began(a, null).ended('nothing', null, 'a kept connection was closed');
    health.began(a, null).ended('unknown', null);
    expect(health.contact('a')).toMatchObject({ cause: 'too many' });
    health.contacted('a', null);
    expect(health.contact('a')).toMatchObject({ cause: null });
    expect(health.contact('b')).toBeNull();
    health.forget('a');
    expect(health.contact('a')).toBeNull();
  });
});

describe('an upstream', () => {
  test('without any attempts is available', () => {
    const { health } = setUp();
    expect([health.state('a'), health.availability(a, null)]).toEqual(['closed', 'available']);
  });

  test.each<AttemptResult>(['unreachable', 'timeout', 'error', 'invalid', 'truncated', 'auth'])(
    'opens its circuit after five times %s in a row, and no other circuit',
    (result) => {
      const { health, attempts } = setUp();
      attempts(4, result);
      expect(health.availability(a, null)).toBe('available');
      attempts(1, result);
      expect([health.state('a'), health.availability(a, null)]).toEqual(['open', 'failing']);
      expect(health.availability(b, null)).toBe('available');
    },
  );

  test.each<AttemptResult>(['refused', 'interrupted', 'stale'])(
    'keeps its circuit closed after %s',
    (result) => {
      const { health, attempts } = setUp();
      attempts(100, result);
      expect(health.availability(a, null)).toBe('available');
    },
  );

  test('opens its circuit when half of its last twenty attempts failed, although never five in a row', () => {
    const { health, attempt } = setUp();
    for (let time = 0; time < 19; time++) attempt(time % 2 === 0 ? 'ok' : 'error');
    expect(health.state('a')).toBe('closed');
    attempt('error');
    expect(health.state('a')).toBe('open');
  });

  test('is judged by the last half minute, and older failures are forgotten', () => {
    const { clock, health, attempt } = setUp();
    for (let time = 0; time < 19; time++) attempt(time % 2 === 0 ? 'ok' : 'error');
    clock.advance(30_000);
    attempt('error');
    expect(health.state('a')).toBe('closed');
  });
});

describe('an upstream with an open circuit', () => {
  test('gets one trial request after five seconds, whose success closes the circuit', () => {
    const { clock, health, attempt, attempts } = setUp();
    attempts(5, 'unreachable');
    clock.advance(4_999);
    expect(health.availability(a, null)).toBe('failing');
    clock.advance(1);
    expect([health.state('a'), health.availability(a, null)]).toEqual(['half_open', 'available']);
    const probe = health.began(a, null);
    expect(health.availability(a, null)).toBe('failing');
    probe.ended(signOf('ok'), null);
    expect([health.state('a'), health.availability(a, null)]).toEqual(['closed', 'available']);
    attempt('error');
    expect(health.state('a')).toBe('closed');
  });

  test('stays open for five more seconds when the trial fails', () => {
    const { clock, health, attempt, attempts } = setUp();
    attempts(5, 'unreachable');
    clock.advance(5_000);
    attempt('unreachable');
    expect(health.state('a')).toBe('open');
    clock.advance(5_000);
    expect(health.availability(a, null)).toBe('available');
  });

  test('gets another trial request only after a minute when the first one hangs', () => {
    const { clock, health, attempts } = setUp();
    attempts(5, 'timeout');
    clock.advance(5_000);
    health.began(a, null);
    clock.advance(59_999);
    expect(health.availability(a, null)).toBe('failing');
    clock.advance(1);
    expect(health.availability(a, null)).toBe('available');
  });

  test('is not judged by earlier attempts: they neither close the circuit nor keep it open', () => {
    const { clock, health, attempts } = setUp();
    const [slow, slower] = [health.began(a, null), health.began(a, null)];
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

  test('is closed at once when a request without another route succeeds', () => {
    const { clock, health, attempts, attempt } = setUp();
    attempts(5, 'unreachable');
    clock.advance(1_000);
    attempt('ok');
    expect(health.state('a')).toBe('closed');
  });
});

describe('an upstream that asked for a pause of many minutes', () => {
  const pauseMs = 600_000;

  test('is not used for a minute, then gets one trial request at a time, and is used again when one succeeds', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited', pauseMs);
    clock.advance(59_999);
    expect(health.coolingMs(a)).toBe(1);
    clock.advance(1);
    expect([health.availability(a, null), health.coolingMs(a)]).toEqual(['available', 0]);
    const asking = health.began(a, null);
    clock.advance(1);
    expect([health.availability(a, null), health.coolingMs(a)]).toEqual(['cooling', 1_000]);
    asking.opened();
    expect(health.availability(a, null)).toBe('available');
  });

  test('is not used for another minute when the trial request is limited as well', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited', pauseMs);
    clock.advance(60_000);
    attempt('rate_limited', pauseMs - 60_000);
    expect(health.coolingMs(a)).toBe(60_000);
    clock.advance(60_000);
    expect(health.availability(a, null)).toBe('available');
  });

  test('follows its newest retry-after, and is used again after any other answer', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited', pauseMs);
    clock.advance(60_000);
    attempt('rate_limited', 2_000);
    clock.advance(7_000);
    for (let request = 0; request < 3; request++) {
      health.began(a, null);
      clock.advance(1);
      expect(health.availability(a, null)).toBe('available');
    }
    attempt('rate_limited', pauseMs);
    clock.advance(60_000);
    attempt('refused');
    health.began(a, null);
    clock.advance(1);
    expect(health.availability(a, null)).toBe('available');
  });

  test('gets another trial request when the first one is interrupted, or has no answer for ten seconds', () => {
    const { clock, health, attempt } = setUp();
    attempt('overloaded', pauseMs);
    clock.advance(60_000);
    attempt('interrupted');
    expect(health.availability(a, null)).toBe('available');
    health.began(a, null);
    clock.advance(9_999);
    expect(health.availability(a, null)).toBe('cooling');
    clock.advance(1);
    expect(health.availability(a, null)).toBe('available');
  });
});

describe('an upstream that limits requests', () => {
  test.each<AttemptResult>(['rate_limited', 'overloaded'])(
    'by %s is not used for the time of its retry-after, and its circuit stays closed',
    (result) => {
      const { clock, health, attempt } = setUp();
      for (let time = 0; time < 9; time++) attempt(result, 2_000);
      expect([health.state('a'), health.availability(a, null)]).toEqual(['closed', 'cooling']);
      clock.advance(1_999);
      expect([health.availability(a, null), health.coolingMs(a)]).toEqual(['cooling', 1]);
      clock.advance(1);
      expect([health.availability(a, null), health.coolingMs(a)]).toEqual(['available', 0]);
    },
  );

  test.each([
    [1_000, 1_000],
    [50, 50],
    [0, 1_000],
  ])(
    'with a retry-after of %i ms is used as before %i ms later, and not last for longer',
    (said, pauseMs) => {
      const { clock, health, attempt } = setUp();
      attempt('rate_limited', said);
      clock.advance(pauseMs - 1);
      expect(health.availability(a, null)).toBe('cooling');
      clock.advance(1);
      expect(health.availability(a, null)).toBe('available');
    },
  );

  test('without a retry-after is tried last for five seconds', () => {
    const { clock, health, attempt } = setUp();
    attempt('rate_limited');
    clock.advance(4_999);
    expect(health.availability(a, null)).toBe('failing');
    clock.advance(1);
    expect(health.availability(a, null)).toBe('available');
  });
});

describe('an upstream whose answers break off', () => {
  test('opens its circuit after five in a row, although each of them began well', () => {
    const { health } = setUp();
    for (let time = 0; time < 5; time++) {
      const attempt = health.began(a, null);
      attempt.opened();
      attempt.ended(signOf('truncated'), null);
    }
    expect(health.state('a')).toBe('open');
  });

  test('opens its circuit when nine of ten do', () => {
    const { health } = setUp();
    for (let time = 0; time < 40 && health.state('a') === 'closed'; time++) {
      const attempt = health.began(a, null);
      attempt.opened();
      attempt.ended(signOf(time % 3 === 0 ? 'ok' : 'truncated'), null);
    }
    expect(health.state('a')).toBe('open');
  });

  test('closes its circuit as soon as an answer begins', () => {
    const { clock, health, attempts } = setUp();
    attempts(5, 'unreachable');
    clock.advance(5_000);
    health.began(a, null).opened();
    expect(health.state('a')).toBe('closed');
  });
});

test('an answer that its client does not read says nothing of its upstream', () => {
  const { health } = setUp();
  for (let time = 0; time < 20; time++) {
    const attempt = health.began(a, null);
    attempt.opened();
    attempt.ended(failures.unread.health, null);
  }
  expect(health.state('a')).toBe('closed');
});

describe('probes', () => {
  test('open a circuit when they fail, and close it with one success', () => {
    const { clock, health } = setUp();
    for (let time = 0; time < 5; time++) health.probed('a').ended(signOf('unreachable'), null);
    expect([health.state('a'), health.availability(a, null)]).toEqual(['open', 'failing']);
    clock.advance(1);
    health.probed('a').ended(signOf('ok'), null);
    expect([health.state('a'), health.availability(a, null)]).toEqual(['closed', 'available']);
  });

  test('do not make up for failed requests when they succeed: a model list is not an answer', () => {
    const { health, attempt, attempts } = setUp();
    attempts(4, 'timeout');
    health.probed('a').ended(signOf('ok'), null);
    attempt('timeout');
    expect(health.state('a')).toBe('open');
    health.probed('a').ended(signOf('ok'), null);
    expect(health.state('a')).toBe('open');
  });
});
