import { describe, expect, test } from 'vitest';
import type { UpstreamAnswer, UpstreamFault, Upstreams } from '../../src/domain/ports/upstreams.ts';
import { free } from '../../src/domain/pricing.ts';
import { createModelDiscovery } from '../../src/models/model-discovery.ts';
import type { Offer } from '../../src/models/model-discovery.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { localSource } from '../support/model-source.ts';

const offer: Offer = {
  source: localSource,
  listPath: '/models',
  allow: ['*'],
  rename: {},
  price: free,
  holdTokens: 1_024,
};

/** An upstream whose next answers the test sets; `calls` counts the calls to it. */
function createListing() {
  let calls = 0;
  let next: (signal: AbortSignal) => Promise<UpstreamAnswer | UpstreamFault> = async () => ({
    kind: 'fault',
    fault: 'unreachable',
  });
  const upstreams: Upstreams = {
    call(_call, signal) {
      calls++;
      return next(signal);
    },
  };
  return {
    upstreams,
    calls: () => calls,
    list: (...ids: readonly string[]) =>
      (next = async () => answerWith(JSON.stringify({ data: ids.map((id) => ({ id })) }))),
    answer: (body: string, status = 200) => (next = async () => answerWith(body, status)),
    hang: () =>
      (next = (signal) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => resolve({ kind: 'fault', fault: 'interrupted' })),
        )),
  };
}

function answerWith(body: string, status = 200): UpstreamAnswer {
  const parts: (Uint8Array | null)[] = [new TextEncoder().encode(body), null];
  return {
    kind: 'answer',
    status,
    contentType: 'application/json',
    retryAfterMs: null,
    read: async () => parts.shift() ?? null,
    release: () => {},
  };
}

describe('discovered models', () => {
  test('with control characters in their names are left out, which is reported once', async () => {
    const listing = createListing();
    const reported: unknown[] = [];
    const clock = createFakeClock();
    listing.list('good', 'a\u001b[2J', 'b\u202egnp', 'c\nforged: line');
    const models = createModelDiscovery(
      offer,
      listing.upstreams,
      clock,
      (...report) => void reported.push(report),
    );
    expect(await models.list()).toMatchObject([{ id: 'good' }]);
    expect(await models.find('a\u001b[2J')).toBeNull();
    clock.advance(60_000);
    await models.find('another');
    expect(listing.calls()).toBe(2);
    expect(reported).toEqual([
      [
        'model discovery failed',
        '3 models left out: control characters in their names',
        { upstream: localSource.upstream },
      ],
    ]);
  });

  test('are offered under their own names and routed to their upstream', async () => {
    const listing = createListing();
    listing.answer('{"data":[null,{"id":"a"},3,{"id":7},{"id":"org/b"}]}');
    const models = createModelDiscovery(offer, listing.upstreams, createFakeClock(), () => {});
    expect(await models.find('org/b')).toMatchObject({
      id: 'org/b',
      routes: [{ ...localSource, model: 'org/b' }],
    });
    expect(await models.list()).toHaveLength(2);
    expect(listing.calls()).toBe(1);
  });

  test('are filtered by `allow` and renamed by `rename`', async () => {
    const listing = createListing();
    listing.list('org/small', 'org/large', 'other/small', 'embed-1');
    const named = { ...offer, allow: ['org/*', 'other/*'], rename: { 'org/*': '*', 'other/*': '*-theirs' } };
    const models = createModelDiscovery(named, listing.upstreams, createFakeClock(), () => {});
    expect((await models.list()) as object[]).toMatchObject([
      { id: 'small', routes: [{ model: 'org/small' }] },
      { id: 'large', routes: [{ model: 'org/large' }] },
      { id: 'small-theirs', routes: [{ model: 'other/small' }] },
    ]);
    expect(await models.find('org/small')).toBeNull();
  });

  test('are read from a list in Google’s form', async () => {
    const listing = createListing();
    listing.answer('{"models":[{"name":"models/gemini-x"},{"name":7},{}]}');
    const models = createModelDiscovery(offer, listing.upstreams, createFakeClock(), () => {});
    expect((await models.list()) as object[]).toMatchObject([
      { id: 'gemini-x', routes: [{ model: 'gemini-x' }] },
    ]);
  });

  test('are fetched once for many concurrent callers', async () => {
    const listing = createListing();
    listing.list('a');
    const models = createModelDiscovery(offer, listing.upstreams, createFakeClock(), () => {});
    await Promise.all(Array.from({ length: 50 }, () => models.find('a')));
    expect(listing.calls()).toBe(1);
  });

  test('come from the last good list while the upstream hangs and after it has failed', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    listing.list('a');
    const models = createModelDiscovery(offer, listing.upstreams, clock, () => {});
    await models.list();
    listing.hang();
    clock.advance(60_000);
    expect(await models.find('a')).toMatchObject({ id: 'a' });
    expect(listing.calls()).toBe(2);
    clock.advance(5_000);
    listing.answer('<html>', 500);
    clock.advance(60_000);
    expect(await models.find('a')).toMatchObject({ id: 'a' });
  });

  test('are fetched again for an unknown name, at most every two seconds', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    listing.list('a');
    const models = createModelDiscovery(offer, listing.upstreams, clock, () => {});
    await models.list();
    listing.list('a', 'new');
    expect(await models.find('new')).toBeNull();
    expect(listing.calls()).toBe(1);
    clock.advance(2_000);
    expect(await models.find('new')).toMatchObject({ id: 'new' });
    expect(listing.calls()).toBe(2);
  });

  test.each(['', '{}', '[]', '{"data":3}', 'x'.repeat(1_100_000)])(
    'are unavailable while the upstream answers %.20s',
    async (body) => {
      const listing = createListing();
      listing.answer(body);
      const models = createModelDiscovery(offer, listing.upstreams, createFakeClock(), () => {});
      expect(await models.list()).toMatchObject({ code: 'upstream_unavailable', retryAfterMs: 2_000 });
      expect(await models.find('a')).toMatchObject({ code: 'upstream_unavailable' });
    },
  );
});
