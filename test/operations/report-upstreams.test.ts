import { expect, test } from 'vitest';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import type { Target } from '../../src/domain/upstreams/sent-request.ts';
import { reportUpstreams } from '../../src/operations/report-upstreams.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('an upstream is reported by its latest contact, its circuit and its pauses', () => {
  const clock = createFakeClock();
  const health = new UpstreamHealth(clock);
  const a = { upstream: 'a', model: 'tiny' };
  const report = () => reportUpstreams(['a', 'b'], health)['a'];
  expect(report()).toEqual({ state: 'unknown' });
  health.contacted('a', 'no list');
  expect(report()).toEqual({ state: 'failing', cause: 'no list' });
  health.began(a, null).ended('success', null);
  expect(report()).toEqual({ state: 'ok' });
  health.began(a, null).ended('failure', null, 'refused');
  expect([report(), health.state('a')]).toEqual([{ state: 'failing', cause: 'refused' }, 'closed']);
  for (let time = 0; time < 4; time++) health.began(a, null).ended('failure', null, 'refused');
  expect([report(), health.state('a')]).toEqual([{ state: 'failing', cause: 'refused' }, 'open']);
  clock.advance(5_000);
  expect(report()).toEqual({ state: 'probing', cause: 'refused' });
  health.began(a, null).ended('busy', 30_000, 'too many requests');
  expect(report()).toEqual({ state: 'paused by the provider', cause: 'too many requests' });
  expect(reportUpstreams(['a', 'b'], health)['b']).toEqual({ state: 'unknown' });
});

test('a model that fails beside another one is named in the report of its upstream, which is ok', () => {
  const clock = createFakeClock();
  const health = new UpstreamHealth(clock);
  const [one, other] = ['one', 'other'].map((model) => ({ upstream: 'a', model })) as [Target, Target];
  const report = () => reportUpstreams(['a'], health)['a'];
  health.began(one, null).ended('busy', 30_000, 'too many requests');
  expect(report()).toEqual({ state: 'paused by the provider', cause: 'too many requests' });
  health.began(other, null).ended('success', null);
  const models = { one: { state: 'paused by the provider', cause: 'too many requests' } };
  expect(report()).toEqual({ state: 'ok', models });
  health.began(other, null).ended('failure', null, 'refused', 'connection');
  expect(report()).toEqual({ state: 'failing', cause: 'refused', models });
  clock.advance(30_000);
  health.began(one, null).opened();
  expect(report()).toEqual({ state: 'ok' });
});
