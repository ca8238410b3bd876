import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { askAdmin } from '../support/admin-client.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const hourMs = 3_600_000;
const startMs = Date.parse('2027-01-30T20:00:00Z');

/** How many requests are sent, and how much time passes between two of them at most, in hours. */
const requests = 24;
const maxHours = 9;

/** A request as its record says. */
interface Row {
  readonly key_id: string;
  readonly created_at: string;
  readonly model: string;
  readonly upstream: string;
  readonly outcome: string;
  readonly tag: string | null;
  readonly group: string | null;
  readonly usage: Readonly<Record<string, number>> | null;
  readonly charge: string;
}

type Sums = Record<string, string | number | null>;

/** What each group is read from. */
const groupOf: Readonly<Record<string, (row: Row) => string | null>> = {
  hour: ({ created_at: at }) => `${at.slice(0, 13)}:00:00.000Z`,
  day: ({ created_at: at }) => at.slice(0, 10),
  month: ({ created_at: at }) => at.slice(0, 7),
  key: ({ key_id: id }) => id,
  model: ({ model }) => model,
  upstream: ({ upstream }) => upstream,
  outcome: ({ outcome }) => outcome,
  tag: ({ tag }) => tag,
  group: ({ group }) => group,
};

const tokens = [
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
];

const nanosOf = (charge: unknown): bigint => {
  const [whole = '0', fraction = ''] = String(charge).split('.');
  return BigInt(whole + fraction.padEnd(9, '0'));
};

/** The sums of some records by some groups: an own calculation from what the records say. */
function addUp(records: readonly Row[], by: readonly string[]): Map<string, bigint[]> {
  const sums = new Map<string, bigint[]>();
  for (const row of records) {
    const group = JSON.stringify(by.map((name) => groupOf[name]?.(row)));
    const added = [1n, ...tokens.map((name) => BigInt(row.usage?.[name] ?? 0)), nanosOf(row.charge)];
    const sum = sums.get(group) ?? added.map(() => 0n);
    sums.set(
      group,
      sum.map((value, at) => value + (added[at] ?? 0n)),
    );
  }
  return sums;
}

/** The same of what usage answers. */
function sumsOf(rows: readonly Sums[], by: readonly string[]): Map<string, bigint[]> {
  return new Map(
    rows.map((row) => [
      JSON.stringify(by.map((name) => (name === 'key' ? row['key_id'] : row[name]))),
      [...['requests', ...tokens].map((name) => BigInt(Number(row[name]))), nanosOf(row['charge'])],
    ]),
  );
}

const groupings: readonly (readonly string[])[] = [
  [],
  ['hour'],
  ['day'],
  ['month'],
  ['key'],
  ['model'],
  ['upstream'],
  ['outcome'],
  ['tag'],
  ['tag', 'day'],
  ['group'],
  ['group', 'model', 'month'],
  ['day', 'key', 'group'],
  ['key', 'model', 'month'],
  ['hour', 'key', 'group', 'model', 'upstream', 'outcome', 'tag'],
];

/** What usage says of some requests: without a function that makes a database, on SQLite. */
export function describeUsage(createDatabase: (() => Promise<TestDatabase>) | null): void {
  describe('with requests of three days', () => {
    let database: TestDatabase | null = null;
    const spool = mkdtempSync(join(tmpdir(), 'textgate-usage-'));
    let upstreams: ScriptedUpstream[];
    let gateway: TestGateway;
    let records: readonly Row[];
    const keys: { readonly id: string; readonly name: string; readonly secret: string }[] = [];
    /** The groups of the keys of all requests when they were sent, in their order. */
    const groups: (string | null)[] = [];

    beforeAll(async () => {
      // Only the date jumps: deadlines of connections and leases must not.
      let passedMs = startMs - Date.now();
      const clock = { ...systemClock, now: () => Date.now() + passedMs };
      upstreams = [await startUpstream(), await startUpstream()];
      const [local, other] = upstreams;
      database = (await createDatabase?.()) ?? null;
      gateway = await startGateway({
        clock,
        upstreamUrl: local?.url ?? '',
        upstreams: { other: { url: other?.url ?? '' } },
        routes: [
          { upstream: 'local', model: 'tiny' },
          { upstream: 'other', model: 'tiny' },
        ],
        passthrough: [{ path: '/tokenize', upstream: 'local', free: true }],
        price: { input: '1', cachedInput: '0.1', output: '2' },
        limits: { requestsPerMinute: 1_000 },
        groups: { 'team-a': {}, 'team-b': { budget: { amount: '5', per: 'month' } } },
        ...(database === null ? {} : { databaseUrl: database.url, spool }),
      });
      for (const name of ['bob', 'carol']) {
        const { key, secret } = await gateway.gateway.createKey(name, { tags: ['search', 'chat:2'] });
        keys.push({ id: key.id, name, secret });
      }
      const random = seededNumbers(7);
      const oneOf = <Kind>(kinds: readonly Kind[]): Kind =>
        kinds[Math.floor(random() * kinds.length)] as Kind;
      for (let sent = 0; sent < requests; sent++) {
        const answers = oneOf([[true], [true], [false, true], [false, false]]);
        for (const [at, upstream] of upstreams.entries())
          upstream.play(
            answers[at] === false
              ? (response) => void response.writeHead(500).end()
              : sayTexts(oneOf([['a'], ['a ', 'b']])),
          );
        const tag = oneOf([null, 'search', 'chat:2']);
        const { id, secret } = oneOf(keys);
        const group = oneOf([null, 'team-a', 'team-b']);
        await gateway.gateway.keys.update(id, { group });
        groups.push(group);
        const headers = {
          authorization: `Bearer ${secret}`,
          ...(tag === null ? {} : { 'x-textgate-tag': tag }),
        };
        const path = oneOf(['/v1/chat/completions', '/v1/chat/completions', '/v1/responses', '/tokenize']);
        const messages = [{ role: 'user', content: 'x' }];
        const body = path === '/v1/responses' ? { model: 'small', input: 'x' } : { model: 'small', messages };
        await (await gateway.post(path, body, { headers })).text();
        await gateway.recorded();
        passedMs += Math.floor(random() * maxHours * hourMs);
      }
      records = (await ask('/records?limit=200')).body.data;
    });
    afterAll(async () => {
      await gateway.close();
      for (const upstream of upstreams) await upstream.close();
      await database?.drop();
      rmSync(spool, { recursive: true, force: true });
    });

    const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      askAdmin(gateway, 'GET', path, undefined, headers);
    const usage = async (query: string): Promise<readonly Sums[]> => {
      const { status, body } = await ask(`/usage?${query}`);
      expect({ query, status }).toEqual({ query, status: 200 });
      expect(body).toMatchObject({ object: 'list', next: null });
      return body.data;
    };
    const own = async (query: string, secret = keys[0]?.secret, headers = {}) => {
      const answer = await fetch(`${gateway.url}/v1/key/usage?${query}`, {
        headers: { authorization: `Bearer ${secret}`, ...headers },
      });
      const text = await answer.text();
      const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true;
      return { status: answer.status, text, body: isJson ? JSON.parse(text) : null };
    };

    test('the requests are of several days, upstreams, outcomes and tags', () => {
      expect(records).toHaveLength(requests);
      for (const name of ['day', 'month', 'key', 'model', 'upstream', 'outcome', 'tag', 'group'])
        expect({ name, values: new Set(records.map((row) => groupOf[name]?.(row))).size > 1 }).toEqual({
          name,
          values: true,
        });
    });

    test('a request has the group that its key was in when it was sent, wherever that is now', () => {
      expect(records.map(({ group }) => group).toReversed()).toEqual(groups);
    });

    test.each(groupings.map((by) => ({ by })))('sums by $by are those of the records', async ({ by }) => {
      const rows = await usage(`by=${by.join()}`);
      expect(sumsOf(rows, by)).toEqual(addUp(records, by));
    });

    test.each<[string, (row: Row) => boolean]>([
      ['model=small', ({ model }) => model === 'small'],
      ['upstream=other', ({ upstream }) => upstream === 'other'],
      ['outcome=upstream_failed', ({ outcome }) => outcome === 'upstream_failed'],
      ['tag=chat:2', ({ tag }) => tag === 'chat:2'],
      ['tag=', ({ tag }) => tag === null],
      ['group=team-a', ({ group }) => group === 'team-a'],
      ['group=', ({ group }) => group === null],
      ['group=team-b&model=small', ({ group, model }) => group === 'team-b' && model === 'small'],
      ['tag=search&outcome=completed', ({ tag, outcome }) => tag === 'search' && outcome === 'completed'],
      ['from=2027-01-31T00:00:00Z&to=2027-02-01', ({ created_at: at }) => at.startsWith('2027-01-31')],
      ['from=2027-01-31T07:00:00Z', ({ created_at: at }) => at >= '2027-01-31T07'],
      ['from=2027-01-31T08:00:00%2B01:00', ({ created_at: at }) => at >= '2027-01-31T07'],
      ['from=0000-01-01&to=9999-12-31T23:00:00Z', () => true],
      ['to=1999-01-01', () => false],
    ])('sums where %s are those of the records', async (query, isWanted) => {
      const wanted = records.filter(isWanted);
      for (const by of [[], ['day', 'model'], ['key', 'tag']])
        expect(sumsOf(await usage(`by=${by.join()}&${query}`), by)).toEqual(addUp(wanted, by));
    });

    test('a key has its id and its name', async () => {
      const rows = await usage('by=key');
      expect(new Map(rows.map((row) => [row['key_id'], row['key_name']]))).toEqual(
        new Map(keys.map(({ id, name }) => [id, name])),
      );
    });

    test('a key is filtered by its id, and its charges are what it has spent', async () => {
      for (const { id } of keys) {
        const [row] = await usage(`key=${id}`);
        expect(row?.['charge']).toBe((await ask(`/keys/${id}`)).body.spent);
      }
      expect(await ask('/usage?key=key_unknown')).toMatchObject({ status: 404 });
    });

    test('pages together are all rows, as JSON and as CSV', async () => {
      const by = 'hour,key,model,outcome,tag';
      const all = await usage(`by=${by}`);
      const found: Sums[] = [];
      const lines: string[] = [];
      let after = '';
      do {
        const query = `/usage?by=${by}&limit=5${after === '' ? '' : `&after=${encodeURIComponent(after)}`}`;
        const { body } = await ask(query);
        expect(body.data.length).toBeLessThanOrEqual(5);
        found.push(...body.data);
        const csv = await ask(query, { accept: 'text/csv' });
        expect(csv.headers.get('x-textgate-next')).toBe(body.next);
        lines.push(...csv.text.split('\r\n').slice(1, -1));
        after = body.next ?? '';
      } while (after !== '');
      expect(found).toEqual(all);
      expect(lines).toEqual(all.map((row) => Object.values(row).join(',')));
    });

    test('the columns of CSV are the fields of JSON, also without rows', async () => {
      const [row = {}] = await usage('by=month,tag');
      const csv = await ask('/usage?by=month,tag&to=1999-01-01', { accept: 'text/csv' });
      expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
      expect(csv.text).toBe(`${Object.keys(row).join()}\r\n`);
    });

    test('a holder sees the sums of its own key', async () => {
      for (const { id, secret } of keys) {
        const mine = records.filter((row) => row.key_id === id);
        for (const by of [[], ['day'], ['tag', 'model', 'outcome'], ['hour']]) {
          const { status, body } = await own(`by=${by.join()}`, secret);
          expect(status).toBe(200);
          expect(sumsOf(body.data, by)).toEqual(addUp(mine, by));
        }
        const csv = await own('by=day', secret, { accept: 'text/csv' });
        expect(csv.text.split('\r\n')[0]).toMatch(/^day,requests,/);
      }
      expect((await own('', gateway.key)).body.data).toEqual([]);
      expect((await own('', 'sk-tg-wrong')).status).toBe(401);
    });

    test('a holder gets no sums of others and of no upstream, by no parameter and no cursor', async () => {
      const [, theirs] = keys;
      for (const query of [
        'by=key',
        'by=day,upstream',
        `key=${theirs?.id}`,
        'upstream=local',
        'keyId=x',
        'where=x',
      ]) {
        const { status, text } = await own(query);
        expect({ query, status }).toEqual({ query, status: 400 });
        expect(text).not.toContain(theirs?.id);
      }
      const foreign = (await ask(`/usage?by=hour&key=${theirs?.id}&limit=1`)).body.next as string;
      // A cursor of another key, and of the same key with other filters or groups.
      const { next } = (await own('by=hour&limit=1')).body;
      expect((await own(`by=hour&limit=1&after=${encodeURIComponent(next)}`)).status).toBe(200);
      for (const query of [
        `by=hour&after=${encodeURIComponent(foreign)}`,
        `by=hour&outcome=completed&after=${encodeURIComponent(next)}`,
        `by=hour&from=2027-01-30&after=${encodeURIComponent(next)}`,
        `by=day&after=${encodeURIComponent(next)}`,
      ]) {
        const { status, body } = await own(query);
        expect({ query, status }).toEqual({ query, status: 400 });
        expect(body.error).toMatchObject({
          code: 'invalid_value',
          param: 'after',
          message: expect.stringContaining('of this very query') as string,
        });
      }
      expect((await own(`by=hour&after=${encodeURIComponent(`x${foreign}`)}`)).body.error).toMatchObject({
        code: 'invalid_value',
        param: 'after',
      });
    });

    test.each([
      ['by=weekday', 'invalid_value', 'by', /hour, day, month, key, group, model, upstream, outcome, tag/],
      ['by=day,,model', 'invalid_value', 'by', /separated by commas/],
      ['by=day,month', 'invalid_value', 'by', /one of hour, day, month/],
      ['by=day&by=model', 'invalid_value', 'by', /expected a text/],
      ['by=__proto__', 'invalid_value', 'by', /groups among/],
      [
        'modle=small',
        'unknown_parameter',
        'modle',
        /Usage takes by, from, to, model, outcome, tag, limit, after, key/,
      ],
      ['outcome=done', 'invalid_value', 'outcome', /completed/],
      ['from=2027-01-31T07:30:00Z', 'invalid_value', 'from', /whole hour/],
      ['to=2027-01-31T07:00:00.001Z', 'invalid_value', 'to', /whole hour/],
      ['from=yesterday', 'invalid_value', 'from', /expected a time/],
      ['from=2027-02-01&to=2027-01-31', 'invalid_value', 'to', /after 'from'/],
      ['from=2027-02-01&to=2027-02-01', 'invalid_value', 'to', /after 'from'/],
      ['limit=0', 'invalid_value', 'limit', /1 to 1000/],
      ['limit=1001', 'invalid_value', 'limit', /1 to 1000/],
      ['model=%00', 'invalid_value', 'model', /U\+0000/],
      ['after=', 'invalid_value', 'after', /page of this very query/],
      ['after=e30', 'invalid_value', 'after', /page of this very query/],
      [`after=${'x'.repeat(2_000)}`, 'invalid_value', 'after', /page of this very query/],
      ['after=%5B9e99%5D', 'invalid_value', 'after', /page of this very query/],
    ])('a query with %s is refused, and says what is possible', async (query, code, param, message) => {
      const { status, body } = await ask(`/usage?${query}`);
      expect(status).toBe(400);
      expect(body.error).toMatchObject({ code, param });
      expect(body.error.message).toMatch(message);
    });

    test('other methods are refused, and usage needs the token', async () => {
      expect((await askAdmin(gateway, 'POST', '/usage')).status).toBe(405);
      expect((await fetch(`${gateway.adminUrl}/admin/usage`)).status).toBe(401);
      expect((await fetch(`${gateway.url}/v1/key/usage`, { method: 'POST' })).status).toBe(405);
    });

    test('an app that mounts the gateway reads the same', async () => {
      const page = await gateway.gateway.usage({ by: 'day,model', from: '2027-01-31' });
      expect(page.data).toEqual(await usage('by=day,model&from=2027-01-31'));
      await expect(gateway.gateway.usage({ by: 'week' })).rejects.toMatchObject({ code: 'invalid_value' });
      await expect(gateway.gateway.usage({ form: '2027-01-31' } as object)).rejects.toMatchObject({
        code: 'unknown_parameter',
      });
    });
  });
}
