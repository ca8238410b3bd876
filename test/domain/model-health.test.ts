import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Reach } from '../../src/domain/upstreams/failure.ts';
import { reachOf } from '../../src/domain/upstreams/failure.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';

const at = (model: string) => ({ upstream: 'u', model });
const keys = ['k1', 'k2', 'k3'];

function setUp() {
  const clock = createFakeClock();
  const health = new UpstreamHealth(clock);
  const fail = (model: string, key: string | null, times = 1, reach?: Reach): void => {
    for (let time = 0; time < times; time++)
      health.began(at(model), key).ended('failure', null, 'status 500', reach);
  };
  const sees = (model: string, key: string | null) => health.availability(at(model), key);
  return { clock, health, fail, sees };
}

describe('a model at an upstream', () => {
  test('that asked for a pause leaves the others in use', () => {
    const { clock, health, sees } = setUp();
    health.began(at('b'), 'k1').ended('success', null);
    health.began(at('a'), 'k1').ended('busy', 30_000, 'status 429');
    expect([sees('a', 'k1'), sees('b', 'k1'), sees('c', 'k1')]).toEqual([
      'cooling',
      'available',
      'available',
    ]);
    expect([health.targetState(at('a')), health.targetState(at('b')), health.state('u')]).toEqual([
      'open',
      'closed',
      'closed',
    ]);
    expect(health.pauseMs('u')).toBe(0);
    clock.advance(30_000);
    expect(sees('a', 'k1')).toBe('available');
  });

  test('that fails for several keys opens its circuit, and not that of its upstream, however long it goes on', () => {
    const { clock, health, fail, sees } = setUp();
    for (let time = 0; time < 100; time++) {
      for (const key of keys) fail('a', key);
      clock.advance(1_000);
    }
    expect([sees('a', 'other'), health.targetState(at('b')), sees('b', 'other')]).toEqual([
      'failing',
      'closed',
      'available',
    ]);
    expect(health.circuits('u').requests.state).toBe('closed');
  });

  test('that was asked for longest ago is forgotten for the 1,001st one, however early it was first asked for', () => {
    const { health } = setUp();
    for (let number = 0; number < 1_000; number++) health.began(at(`m${number}`), null);
    health.began(at('m0'), null);
    health.began(at('another'), null);
    const known = [...health.circuits('u').models.keys()];
    expect(known).toHaveLength(1_000);
    expect(['m0', 'm1', 'm2', 'another'].map((name) => known.includes(name))).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });

  test('that is served no more is forgotten with its open circuit, and does not speak for its upstream', () => {
    const { health, fail } = setUp();
    for (const key of keys) fail('a', key, 2);
    health.began(at('b'), null).ended('success', null);
    expect([...health.circuits('u').models.keys()]).toEqual(['a', 'b']);
    const late = health.began(at('a'), null);
    health.keepModels('u', new Set(['b']));
    late.ended('failure', null);
    health.keepModels('unknown', new Set());
    expect([...health.circuits('u').models.keys()]).toEqual(['b']);
    expect(health.targetState(at('a'))).toBe('closed');
  });

  test('that answers ends the failures which count for its upstream', () => {
    const { health, fail } = setUp();
    fail('a', null, 3);
    health.began(at('c'), null).ended('success', null);
    fail('b', null, 3);
    expect(health.circuits('u').requests.state).toBe('closed');
  });

  test('has answered with its first text: it fails no more, and is not tried last any more', () => {
    const { clock, health, fail, sees } = setUp();
    fail('a', 'k1');
    health.began(at('a'), 'k1').ended('busy', null, 'status 429');
    expect([health.contact('u')?.cause, sees('a', 'k1')]).toEqual(['status 429', 'failing']);
    clock.advance(1);
    health.began(at('a'), 'k1').opened();
    expect([health.contact('u')?.cause, sees('a', 'k1')]).toEqual([null, 'available']);
  });

  test('is still tried last after the first text of an answer that was asked for before the rate limit', () => {
    const { clock, health, sees } = setUp();
    const early = health.began(at('a'), 'k1');
    clock.advance(1);
    health.began(at('a'), 'k1').ended('busy', null, 'status 429');
    early.opened();
    expect(sees('a', 'k1')).toBe('failing');
  });

  test('is forgotten when an upstream had a thousand others since', () => {
    const { health, fail } = setUp();
    for (let number = 0; number < 3_000; number++) fail(`m${number}`, `k${number}`);
    expect(health.circuits('u').models.size).toBe(1_000);
  });
});

describe('an upstream', () => {
  test.each([
    ['two models', ['a', 'a', 'a', 'b', 'b']],
    ['five models', ['a', 'b', 'c', 'd', 'e']],
  ])('whose failures are those of %s within 30 s opens its circuit for all of them', (_name, models) => {
    const { clock, health, fail, sees } = setUp();
    for (const [number, model] of models.entries()) {
      expect(sees('z', null)).toBe('available');
      fail(model, `k${number}`);
      clock.advance(7_000);
    }
    clock.advance(-7_000);
    expect([sees('z', null), sees('z', 'any'), health.state('u')]).toEqual(['failing', 'failing', 'open']);
    clock.advance(5_000);
    health.began(at('z'), null).opened();
    expect(sees('y', null)).toBe('available');
  });

  test('keeps its circuit closed if the failures of its models are further apart', () => {
    const { clock, fail, sees } = setUp();
    for (const model of ['a', 'a', 'a', 'b', 'b']) {
      fail(model, null);
      clock.advance(8_000);
    }
    expect(sees('z', null)).toBe('available');
  });

  test('that can’t be reached fails for all models and keys', () => {
    const { health, fail, sees } = setUp();
    fail('a', 'k1', 5, 'connection');
    expect([sees('b', 'k2'), health.targetState(at('b'))]).toEqual(['failing', 'open']);
    expect(health.circuits('u').models.get('a')?.circuit.state).toBe('closed');
  });
});

describe('what one key alone causes', () => {
  test.each<[string, Reach, readonly string[]]>([
    ['one model', 'model', ['a']],
    ['several models', 'model', ['a', 'b', 'c']],
    ['an upstream', 'upstream', ['a']],
  ])('at %s opens a circuit for that key, and for no other one', (_name, reach, models) => {
    const { clock, fail, sees } = setUp();
    for (let time = 0; time < 100; time++) {
      for (const model of models) fail(model, 'k1', 1, reach);
      clock.advance(time % 2 === 0 ? 10 : 4_000);
      for (const model of [...models, 'z']) expect(sees(model, 'k2')).toBe('available');
    }
    expect(sees('a', 'k1')).toBe('failing');
  });

  test('is everyone’s as soon as another key fails as well: of one key three failures in a row count', () => {
    const { fail, sees } = setUp();
    fail('a', 'k1', 9);
    fail('a', 'k2');
    expect(sees('a', 'k3')).toBe('available');
    fail('a', 'k2');
    expect(sees('a', 'k3')).toBe('failing');
  });

  test('ends with the answer of any key', () => {
    const { clock, health, fail, sees } = setUp();
    fail('a', 'k1', 9);
    clock.advance(1);
    health.began(at('a'), 'k2').ended('success', null);
    expect(sees('a', 'k1')).toBe('available');
  });

  test('stays open for that key where its trial fails', () => {
    const { clock, health, fail, sees } = setUp();
    // Half of an even mix of attempts opens it, and no run of five failures.
    for (let time = 0; time < 10; time++) {
      fail('a', 'k1');
      health.began(at('a'), 'k2').ended('success', null);
    }
    fail('a', 'k1');
    expect(sees('a', 'k1')).toBe('failing');
    clock.advance(40_000);
    fail('a', 'k1');
    expect([sees('a', 'k1'), sees('a', 'k2')]).toEqual(['failing', 'available']);
  });

  test('is shown as open, with the key, unless an answer began in the last 30 s', () => {
    const { clock, health, fail } = setUp();
    const shown = () => health.circuits('u').models.get('a')?.circuit;
    fail('a', 'k1', 5);
    expect(shown()).toMatchObject({ state: 'open', onlyKey: 'k1' });
    const slow = health.began(at('a'), 'k2');
    clock.advance(1);
    fail('a', 'k1');
    slow.opened();
    fail('a', 'k1', 5);
    expect(shown()).toMatchObject({ state: 'closed', onlyKey: 'k1' });
    expect(health.state('u')).toBe('closed');
    clock.advance(30_000);
    expect(shown()?.state).toBe('half_open');
  });

  test('is told from a share of failures of several keys among many answers', () => {
    for (const [failing, expected] of [
      [['k1', 'k1', 'k1', 'k1'], 'available'],
      [['k1', 'k2', 'k3', 'k4'], 'failing'],
    ] as const) {
      const { health, fail, sees } = setUp();
      for (let time = 0; time < 20; time++) {
        if (time % 2 === 0) health.began(at('a'), 'good').ended('success', null);
        fail('a', failing[time % 4] ?? null);
        if (sees('a', 'k9') !== 'available') break;
      }
      expect(sees('a', 'k9')).toBe(expected);
    }
  });
});

test('no failures of one model, and none of one key, change anything for other models and keys', () => {
  const step = fc.record({
    isKey: fc.boolean(),
    name: fc.nat(3),
    sign: fc.constantFrom('failure', 'busy', 'nothing', 'unknown', 'success', 'opened'),
    waitMs: fc.nat(20_000),
  });
  const property = fc.property(fc.array(step, { maxLength: 80 }), fc.boolean(), (steps, isOneKey) => {
    const { clock, health, sees } = setUp();
    for (const { name, sign, waitMs } of steps) {
      // Either one key fails at any model, or any key at one model.
      const report = isOneKey ? health.began(at(`m${name}`), 'k') : health.began(at('m'), `k${name}`);
      if (sign === 'opened') report.opened();
      else if (sign !== 'busy') report.ended(sign, null);
      else if (!isOneKey) report.ended('busy', waitMs);
      expect(isOneKey ? sees(`m${name}`, 'other') : sees('other', `k${name}`)).toBe('available');
      clock.advance(waitMs);
    }
  });
  fc.assert(property, { ...propertyRun(), numRuns: 300 });
});

describe('how far a failure reaches', () => {
  const said = (status: number | null, message: string) => ({ status, code: null, message });
  test.each([
    ['unreachable', null, 'connection'],
    ['unanswered', null, 'model'],
    ['first_byte_timeout', null, 'model'],
    ['auth', null, 'connection'],
    ['auth', said(401, 'no key for big-1'), 'connection'],
    ['auth', said(402, 'no credit for big-1'), 'connection'],
    ['auth', said(403, 'not allowed'), 'upstream'],
    ['auth', said(403, 'no access to big-1'), 'model'],
    ['unavailable', null, 'upstream'],
    ['unavailable', said(503, 'down'), 'upstream'],
    ['unavailable', said(503, 'big-1 is loading'), 'model'],
    ['server_error', said(500, 'no'), 'model'],
    ['rate_limited', said(429, 'no'), 'model'],
  ] as const)('%s %j: %s', (kind, upstreamError, reach) => {
    expect(reachOf({ kind, upstreamError }, 'big-1')).toBe(reach);
  });
});
