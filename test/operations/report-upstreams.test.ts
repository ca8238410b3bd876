import { expect, test } from 'vitest';
import { createUpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import { reportUpstreams } from '../../src/operations/report-upstreams.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('an upstream is reported by its latest contact, its circuit and its pauses', () => {
  const clock = createFakeClock();
  const health = createUpstreamHealth(clock);
  const report = () => reportUpstreams(['a', 'b'], health)['a'];
  expect(report()).toEqual({ state: 'unknown' });
  health.contacted('a', 'no list');
  expect(report()).toEqual({ state: 'failing', cause: 'no list' });
  health.began('a').ended('success', null);
  expect(report()).toEqual({ state: 'ok' });
  health.began('a').ended('failure', null, 'refused');
  expect([report(), health.state('a')]).toEqual([{ state: 'failing', cause: 'refused' }, 'closed']);
  for (let time = 0; time < 4; time++) health.began('a').ended('failure', null, 'refused');
  expect([report(), health.state('a')]).toEqual([{ state: 'failing', cause: 'refused' }, 'open']);
  clock.advance(5_000);
  expect(report()).toEqual({ state: 'being tried again', cause: 'refused' });
  health.began('a').ended('busy', 30_000, 'too many requests');
  expect(report()).toEqual({ state: 'asked for a pause', cause: 'too many requests' });
  expect(reportUpstreams(['a', 'b'], health)['b']).toEqual({ state: 'unknown' });
});
