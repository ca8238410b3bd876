import { describe, expect, test } from 'vitest';
import type { UpstreamAnswer, UpstreamFault, Upstreams } from '../../src/domain/ports/upstreams.ts';
import { free } from '../../src/domain/money/pricing.ts';
import type { OfferedModel } from '../../src/domain/routing.ts';
import { createModelDiscovery } from '../../src/models/model-discovery.ts';
import type { Offer } from '../../src/models/model-discovery.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { localSource } from '../support/model-source.ts';
import { bodyOf } from '../support/body-of.ts';

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
    ...bodyOf(async () => parts.shift() ?? null),
    release: () => {},
  };
}

/** A discovery over a listing, the changes that it reports, and the contacts that it notes. */
function discover(
  { upstreams }: ReturnType<typeof createListing>,
  { clock = createFakeClock(), offered = offer }: { clock?: FakeClock; offered?: Offer } = {},
) {
  const changes: (string | null)[] = [];
  const contacts: (string | null)[] = [];
  const models = createModelDiscovery(offered, {
    upstreams,
    clock,
    health: { contacted: (_upstream, cause) => void contacts.push(cause) },
    onFound: () => {},
    onChange: (_upstream, problem) => void changes.push(problem),
  });
  return { models, changes, contacts };
}

describe('discovered models', () => {
  test('with control characters in their names, or very long ones, are left out, which is reported once', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    const longest = 'm'.repeat(200);
    listing.list('good', 'a\u001b[2J', 'b\u202egnp', 'c\nforged: line', longest, `${longest}m`);
    const { models, changes } = discover(listing, { clock });
    expect(await models.list()).toMatchObject([{ id: 'good' }, { id: longest }]);
    expect(await models.find('a\u001b[2J')).toBeNull();
    clock.advance(60_000);
    await models.find('another');
    expect(listing.calls()).toBe(2);
    expect(changes).toEqual([
      '4 models left out: control characters in their names, or more than 200 characters',
    ]);
    listing.list('good');
    clock.advance(60_000);
    await models.find('another');
    expect(changes.slice(1)).toEqual([null]);
  });

  test('are offered under their own names and routed to their upstream', async () => {
    const listing = createListing();
    listing.answer(
      String.raw`{"data":[null,{"id":"a"},3,{"id":7},{"id":"c\u0000"},{"id":"\ud800"},{"id":"org/b"}]}`,
    );
    const { models } = discover(listing);
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
    const { models } = discover(listing, { offered: named });
    expect((await models.list()) as object[]).toMatchObject([
      { id: 'small', routes: [{ model: 'org/small' }] },
      { id: 'large', routes: [{ model: 'org/large' }] },
      { id: 'small-theirs', routes: [{ model: 'other/small' }] },
    ]);
    expect(await models.find('org/small')).toBeNull();
  });

  test('to which one name is given by `rename` are reported, and the first in the list has it', async () => {
    const listing = createListing();
    listing.list('a/small', 'b/small', 'b/small', 'a/large');
    const { models, changes } = discover(listing, {
      offered: { ...offer, rename: { '*/small': 'small' } },
    });
    expect(await models.find('small')).toMatchObject({ routes: [{ model: 'a/small' }] });
    expect(changes).toEqual([
      'models.rename gives several models the same name, and only the first of each in the list is offered: small',
    ]);
  });

  test('are read from a list in Google’s form', async () => {
    const listing = createListing();
    listing.answer('{"models":[{"name":"models/gemini-x"},{"name":7},{}]}');
    const { models } = discover(listing);
    expect((await models.list()) as object[]).toMatchObject([
      { id: 'gemini-x', routes: [{ model: 'gemini-x' }] },
    ]);
  });

  test('are known once they are fetched; to ask whether one is known fetches nothing', async () => {
    const listing = createListing();
    listing.list('a');
    const { models } = discover(listing);
    expect([models.knows('a'), listing.calls()]).toEqual([false, 0]);
    await models.find('a');
    expect([models.knows('a'), models.knows('b'), listing.calls()]).toEqual([true, false, 1]);
  });

  test('are fetched once for many concurrent callers', async () => {
    const listing = createListing();
    listing.list('a');
    const { models } = discover(listing);
    await Promise.all(Array.from({ length: 50 }, () => models.find('a')));
    expect(listing.calls()).toBe(1);
  });

  test('come from the last good list while the upstream hangs and after it has failed', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    listing.list('a');
    const { models } = discover(listing, { clock });
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
    const { models } = discover(listing, { clock });
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
      const { models } = discover(listing);
      expect(await models.list()).toMatchObject({ code: 'upstream_unavailable', retryAfterMs: 2_000 });
      expect(await models.find('a')).toMatchObject({ code: 'upstream_unavailable' });
    },
  );

  test('name the cause while they are unavailable, once until it changes, and its end', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    const { models, changes, contacts } = discover(listing, { clock });
    const fetchOnce = async (): Promise<void> => {
      await models.list();
      clock.advance(2_000);
    };
    const address = 'GET http://127.0.0.1:8000/v1/models';
    await fetchOnce();
    await fetchOnce();
    expect(models.problem).toContain(`${address}: the connection failed`);
    expect(changes).toHaveLength(1);
    listing.answer('{}', 401);
    await fetchOnce();
    expect(changes[1]).toBe(
      `${address}: the API key is not accepted (status 401). Correct upstreams.local.apiKey.`,
    );
    listing.answer('{}');
    await fetchOnce();
    expect(changes[2]).toContain(`${address}: the answer is not a list of models.`);
    listing.list('a');
    await fetchOnce();
    expect(changes.slice(3)).toEqual([null]);
    expect(models.problem).toBeNull();
    expect(contacts.map((cause) => cause === null)).toEqual([false, false, false, false, true]);
  });

  test('name the limit of a list that did not arrive in time', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    const { models, changes } = discover(listing, { clock });
    listing.hang();
    const listed = models.list();
    clock.advance(5_000);
    expect(await listed).toMatchObject({ code: 'upstream_unavailable' });
    expect(changes[0]).toContain(': no answer within 5 s.');
  });

  test('report nothing when the gateway closes while their list is fetched', async () => {
    const listing = createListing();
    const { models, changes, contacts } = discover(listing);
    listing.hang();
    const fetched = models.fetchList();
    models.close();
    expect([await fetched, changes, contacts, models.problem]).toEqual([null, [], [], null]);
  });

  test('have the creation time of the list, unless that is missing or the time of the list itself', async () => {
    const listing = createListing();
    const clock = createFakeClock();
    const nowSeconds = clock.now() / 1_000;
    const listed = { old: 7, unknown: null, fresh: nowSeconds, ahead: nowSeconds + 90 };
    listing.answer(
      JSON.stringify({ data: Object.entries(listed).map(([id, created]) => ({ id, created })) }),
    );
    const { models } = discover(listing, { clock });
    expect(((await models.list()) as OfferedModel[]).map((model) => model.createdAtSeconds)).toEqual([
      7, 0, 0, 0,
    ]);
  });
});
