import measure from 'fast-string-truncated-width';
import { describe, expect, test } from 'vitest';
import { selectRows } from '../../src/cli/top/rows.ts';
import { drawScreen } from '../../src/cli/top/screen-lines.ts';
import { firstState, followSelection, press } from '../../src/cli/top/top-state.ts';
import type { TopState } from '../../src/cli/top/top-state.ts';
import type { PresentedStatus, PresentedStatusRow } from '../../src/http/present/status.ts';

const atMs = Date.parse('2030-01-31T12:00:00.000Z');

function row(number: number, more: Partial<PresentedStatusRow> = {}): PresentedStatusRow {
  return {
    request_id: `req_${String(number).padStart(32, '0')}`,
    key_id: 'key_1',
    key_name: 'app',
    protocol: 'chat',
    mode: 'stream',
    model: 'small',
    upstream: 'local',
    created_at: new Date(atMs - 1_000 * number).toISOString(),
    waits_for: null,
    waits_at: null,
    position: null,
    expected_wait_ms: null,
    first_text_ms: null,
    listening: null,
    joined: null,
    node: null,
    ...more,
  };
}

function status(rows: readonly PresentedStatusRow[], more: Partial<PresentedStatus> = {}): PresentedStatus {
  return {
    object: 'status',
    at: new Date(atMs).toISOString(),
    version: '1.2.3',
    node: null,
    state: 'ready',
    reason: null,
    in_flight: { running: rows.length, waiting: 0, all_nodes: true, data: [...rows], has_more: false },
    recent: {
      seconds: 60,
      requests: 12_345,
      per_second: 205.75,
      output_tokens: 1_234_567,
      first_text_ms: { p50: 312, p99: 12_345 },
      endings: { refused: 1, completed: 12_344 },
    },
    upstreams: { local: { state: 'ok', running: rows.length, waiting: 0 } },
    ledger: { open_holds: 0, imbalance: '0.00', settlement_lag_ms: 0, root: null },
    ...more,
  };
}

function draw(shown: PresentedStatus, width: number, height = 24, state: TopState = firstState) {
  const rows = selectRows(shown.in_flight.data, state.filter, state.sort);
  const paint = (_style: string, text: string): string => text;
  return drawScreen({ status: shown, rows, state, nowMs: atMs, lost: null, width, height, paint });
}

const hostile = [
  row(1, { key_name: '\x1b]0;owned\x07\x1b[2J', model: 'a\nb\r\tc\u202Egnp', upstream: '\x9b31m' }),
  row(2, { key_name: '鍵の名前はとても長いので切られます鍵の名前', model: '👩‍👩‍👧‍👦'.repeat(20), node: 'host:1' }),
];

describe('the screen of textgate top', () => {
  test.each([1, 10, 20, 40, 79, 80, 100, 137, 200])('has %i columns exactly, whatever names are', (width) => {
    const cause = `an upstream's word \x1b[31m ${'鍵'.repeat(100)}`;
    const upstreams = {
      '\x1b[1m鍵': { state: 'failing' as const, cause, running: 3, waiting: 2 },
      b: { state: 'ok' as const, running: 0, waiting: 0 },
    };
    const lost = status(hostile, { state: 'not ready', reason: `\x1b[5m${'x'.repeat(300)}`, upstreams });
    for (const height of [1, 5, 10, 24, 60]) {
      const lines = draw(lost, width, height);
      expect(lines).toHaveLength(height);
      expect(lines.map((line) => measure(line).width)).toEqual(lines.map(() => width));
      expect(lines.join('')).not.toMatch(/[\p{Cc}\u202e]/u);
    }
  });

  test('says what ended, what is wrong with the books, and which nodes are missing', () => {
    const wrong = status([], {
      in_flight: { running: 2, waiting: 1_234, all_nodes: false, data: [row(1)], has_more: true },
      ledger: { open_holds: 1, imbalance: '-0.01', settlement_lag_ms: 4_500, root: null },
    });
    const lines = draw(wrong, 120).map((line) => line.trimEnd());
    expect(lines.slice(0, 7)).toEqual([
      'textgate 1.2.3: ready',
      '2 running, 1,234 waiting (other nodes could not be asked)',
      'last 60 s: 12345 requests (205.75/s), 1,234,567 tokens out, first text 312 ms, p99 12.35 s',
      'endings: completed 12,344, refused 1',
      'ledger: imbalance of -0.01 USD',
      'ledger: a settlement has waited for the database for 4.50 s',
      'upstream local  ok, 0 running',
    ]);
    expect(lines.at(-2)).toBe('requests: 1 to 1 of 1, oldest first (the oldest 1 of 1236 were read)');
  });

  test('shows upstreams that fail, then those that work, then those of which nothing is known', () => {
    const states = ['unknown', 'ok', 'paused by the provider', 'unknown', 'probing', 'ok', 'failing'];
    const upstreams = Object.fromEntries(
      states.map((state, at) => [`u${at}`, { state, running: 0, waiting: 0 }]),
    ) as PresentedStatus['upstreams'];
    const lines = draw(status([], { upstreams }), 80, 20);
    const shown = lines.flatMap((line) => /^upstream (u\d)/.exec(line)?.[1] ?? []);
    expect(shown).toEqual(['u6', 'u4', 'u2', 'u1']);
    expect(lines.some((line) => line.startsWith('and 3 more upstreams'))).toBe(true);
    const all = draw(status([], { upstreams }), 80, 40).flatMap(
      (line) => /^upstream (u\d)/.exec(line)?.[1] ?? [],
    );
    expect(all).toEqual(['u6', 'u4', 'u2', 'u1', 'u5', 'u0', 'u3']);
  });

  test('shows the page of the selected request, and the failing upstreams before the others', () => {
    const rows = Array.from({ length: 100 }, (_value, at) => row(at + 1));
    const upstreams = Object.fromEntries(
      Array.from({ length: 20 }, (_value, at) => [
        `u${at}`,
        { state: at === 19 ? ('failing' as const) : ('ok' as const), running: 0, waiting: 0 },
      ]),
    );
    const selected = rows[50]?.request_id ?? '';
    const lines = draw(status(rows, { upstreams }), 80, 24, { ...firstState, selected });
    expect(lines.filter((line) => line.startsWith('upstream '))).toHaveLength(5);
    expect(lines.find((line) => line.startsWith('upstream '))).toMatch(/^upstream u19 +failing/);
    expect(lines.some((line) => line.startsWith('and 15 more upstreams'))).toBe(true);
    expect(lines.filter((line) => line.startsWith('> '))).toEqual([expect.stringMatching(/^> 00000051 /)]);
  });

  test.each<[Partial<PresentedStatusRow>, RegExp]>([
    [{ waits_for: 'slot', upstream: null }, /waits for slot .* -$/],
    [
      { waits_for: 'upstream', waits_at: ['local'], upstream: null, position: 3, expected_wait_ms: 4_500 },
      / position 3, ~5 s .* local$/,
    ],
    [
      { waits_for: 'upstream', waits_at: ['local'], upstream: null, position: 1, expected_wait_ms: 130_000 },
      / position 1, ~2 min .* local$/,
    ],
    [{ first_text_ms: 312 }, / {2}312 ms {2}/],
    [{ first_text_ms: 1_204 }, / {2}1\.20 s {2}/],
    [{ created_at: new Date(atMs - 725_000).toISOString() }, / 12m05s /],
    [{ created_at: new Date(atMs - 12_000_000).toISOString() }, / 3h20m /],
    [{ created_at: new Date(atMs + 5_000).toISOString() }, / 0\.0 s /],
    [{ waits_for: 'upstream', upstream: null, position: 2 }, / position 2 .* -$/],
    [{ joined: row(42).request_id, upstream: null }, / joins 00000042 .* -$/],
    [{ key_name: null }, / key_1 /],
    [{ key_name: null, key_id: null, model: null }, / none yet  - +- /],
  ])('writes a request with %j', (more, written) => {
    expect(draw(status([row(1, more)]), 80).map((line) => line.trimEnd())).toContainEqual(
      expect.stringMatching(written),
    );
  });
});

test('the column of clients is there where a request may be joined, and a filter finds those that have joined one', () => {
  const one = row(1, { listening: 2 });
  const all = [one, row(2, { joined: one.request_id }), row(3, { listening: 0 })];
  const wide = (rows: readonly PresentedStatusRow[]): string => draw(status(rows), 120).join('\n');
  expect(wide(all)).toMatch(
    /CLIENTS.*\n.*00000001 .* local +2  .*\n.*00000002 .* local +-  .*\n.* local +none  /,
  );
  expect(wide(all.slice(1, 2))).not.toContain('CLIENTS');
  const found = selectRows(all, one.request_id, 'oldest first').map(({ request_id: id }) => id);
  expect(found).toEqual(all.slice(0, 2).map(({ request_id: id }) => id));
});

describe('the keys of textgate top', () => {
  const rows = [row(1), row(2), row(3)];
  const keys = (state: TopState, ...typed: readonly string[]): TopState =>
    typed.reduce((before, sequence) => press(before, { sequence }, rows).state, state);

  test('the selection stays on its request, and goes to the next one when it ends', () => {
    const state = keys({ ...firstState, selected: rows[0]?.request_id ?? null }, 'j');
    expect(state.selected).toBe(rows[1]?.request_id);
    const [first, , third] = rows as [PresentedStatusRow, PresentedStatusRow, PresentedStatusRow];
    expect(followSelection(state, [third, row(2), first], rows)).toBe(rows[1]?.request_id);
    expect(followSelection(state, [first, third], rows)).toBe(third.request_id);
    expect(followSelection(state, [first], rows)).toBe(first.request_id);
    expect(followSelection(state, [], rows)).toBeNull();
    expect(keys(state, 'j', 'j', 'j').selected).toBe(third.request_id);
    expect(keys(state, 'k', 'k', 'k').selected).toBe(first.request_id);
  });

  test('cancels the request that was asked about, even if another one is selected by then', () => {
    const asked = keys({ ...firstState, selected: rows[0]?.request_id ?? null }, 'c');
    const moved = { ...asked, selected: rows[2]?.request_id ?? null };
    expect(press(moved, { sequence: 'y' }, rows).effect).toEqual({ kind: 'cancel', id: rows[0]?.request_id });
    for (const sequence of ['n', 'Y', '\r', 'q'])
      expect(press(moved, { sequence }, rows)).toMatchObject({ effect: null, state: { asked: null } });
    expect(keys({ ...firstState, selected: null }, 'c')).toMatchObject({
      asked: null,
      notice: 'no request is selected',
    });
  });

  test('a filter takes text alone, is bounded, and q is a letter in it', () => {
    const typing = keys(firstState, '/', 'q', '\t', '\x1b[5~', '鍵');
    expect(typing).toMatchObject({ filter: 'q鍵', isTyping: true });
    expect(press(typing, { name: 'backspace', sequence: '\x7f' }, rows).state.filter).toBe('q');
    expect(keys(typing, ...Array.from({ length: 200 }, () => 'x')).filter).toHaveLength(100);
    expect(press(typing, { name: 'c', ctrl: true, sequence: '\x03' }, rows).effect).toEqual({ kind: 'quit' });
  });

  test('sorts by key, model, upstream and first text, and keeps the order of arrival among equals', () => {
    const mixed = [
      row(1, { model: 'b', first_text_ms: 5, key_name: 'z' }),
      row(2, { model: 'a', first_text_ms: 9, key_name: 'y', upstream: 'a' }),
      row(3, { model: 'a', key_name: 'x', upstream: null }),
    ];
    const order = (sort: TopState['sort']): string =>
      selectRows(mixed, '', sort)
        .map(({ request_id: id }) => id.at(-1))
        .join('');
    expect([order('oldest first'), order('by key'), order('by model')]).toEqual(['123', '321', '231']);
    expect([order('by upstream'), order('by first text')]).toEqual(['321', '321']);
  });
});
