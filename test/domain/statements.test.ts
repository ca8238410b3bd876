import { generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { linkRow, startOfChain } from '../../src/domain/statements/chain.ts';
import type { ChainState } from '../../src/domain/statements/chain.ts';
import { compareStatements } from '../../src/domain/statements/check-statement.ts';
import { readStatement } from '../../src/domain/statements/read-statement.ts';
import {
  buildTree,
  followPath,
  hashOfRoot,
  leafOf,
  noPrevious,
  pathOf,
  topOf,
} from '../../src/domain/statements/root.ts';
import { signingKeyOf } from '../../src/shared/signing-key.ts';
import { lineOfRow, writeStatement } from '../../src/domain/statements/write-statement.ts';
import type { Statement } from '../../src/domain/statements/write-statement.ts';
import { faultsOf } from '../support/statement-tools.ts';

const key = signingKeyOf(generateKeyPairSync('ed25519').privateKey);
const otherKey = signingKeyOf(generateKeyPairSync('ed25519').privateKey);
const keyId = 'key_AAAAAAAAAAAA';

/** A statement of some rows behind an opening one, with a root. */
function stated(other: Partial<Statement> = {}, of = keyId, count = 5, skip = 0): string {
  let state: ChainState = startOfChain(of);
  let opening = state;
  const rows: string[] = [];
  for (let number = 1; number <= count; number++) {
    const linked = linkRow(state, {
      number,
      createdAtMs: Date.UTC(2030, 0, number),
      kind: number === 1 ? 'credit' : 'charge',
      deltaNanos: number === 1 ? 5_000_000_000 : -number * 1_001,
      reference: number === 1 ? 'invoice "7"\nÜ \u2028' : `req_${number}`,
    });
    if (number > skip) rows.push(lineOfRow(linked));
    else opening = linked;
    state = linked;
  }
  const heads = ['key_0', of, 'key_z'].map((id) => ({ keyId: id, number: count, hash: state.hash }));
  const tree = buildTree(heads.map(leafOf));
  const root = { number: 3, madeAtMs: 7, previous: noPrevious, tree: topOf(tree) ?? '', accounts: 3 };
  return writeStatement(
    {
      keyId: of,
      name: 'bob',
      fromMs: null,
      toMs: Date.UTC(2031, 0),
      madeAtMs: Date.UTC(2030, 5),
      folded: 0,
      opening,
      closing: state,
      rows,
      hasMore: false,
      proof: {
        root: { ...root, hash: hashOfRoot(root) },
        head: { keyId: of, number: count, hash: state.hash },
        path: pathOf(tree, 1),
      },
      ...other,
    },
    key,
  );
}

const keys = [key];
let whole: string;
let lines: readonly string[];
beforeAll(() => {
  whole = stated();
  lines = whole.split('\n');
});

/** The whole statement with other lines. */
function edited(edit: (lines: string[]) => void): string {
  const copy = [...lines];
  edit(copy);
  return copy.join('\n');
}

/** Changes a part of a line. */
function change(all: string[], at: number, part: string | RegExp, other: string): void {
  all[at] = (all[at] ?? '').replace(part, other);
}

function lineAt(beginning: RegExp): number {
  return lines.findIndex((line) => beginning.test(line));
}

test('a statement is printable ASCII in lines, and has no fault', () => {
  expect(whole).toMatch(/^[\x20-\x7e\n]+$/);
  expect(faultsOf(whole, keys)).toEqual([]);
  expect(faultsOf(stated({}, keyId, 5, 2), keys)).toEqual([]);
  expect(faultsOf(stated({ proof: null }), keys)).toEqual([]);
});

describe('a statement that was changed says what is wrong', () => {
  const row = (number: number): number => lineAt(new RegExp(`^row \\w+ ${number} `));
  test.each<[string, (lines: string[]) => void, RegExp]>([
    ['an amount', (all) => change(all, row(3), '-0.000003003', '-0.000003002'), /^row 3: its balance/],
    ['a request', (all) => change(all, row(4), 'req_4', 'req_5'), /^row 4 was changed/],
    ['a time', (all) => change(all, row(2), '2030', '2031'), /^row 2 was changed/],
    ['a row that was dropped', (all) => all.splice(row(3), 1), /^row 3 is missing: row 4 stands/],
    ['the first row dropped', (all) => all.splice(row(1), 1), /^row 1 is missing: row 2 stands/],
    [
      'the last row dropped',
      (all) => all.splice(row(5), 1),
      /^rows 5 to 5 are missing before the closing line/,
    ],
    [
      'two rows that were swapped',
      (all) => ([all[row(2)], all[row(3)]] = [lines[row(3)] ?? '', lines[row(2)] ?? '']),
      /^row 3 stands where row 2 belongs: the order was changed/,
    ],
    ['a row twice', (all) => all.splice(row(3), 0, all[row(3)] ?? ''), /^row 3 stands where row 4 belongs/],
    [
      'the closing balance',
      (all) => change(all, lineAt(/^closing/), '4.9', '5.9'),
      /^the closing balance is not that of the last row/,
    ],
    [
      'the opening balance',
      (all) => change(all, lineAt(/^opening/), / 0\.0/, ' 1.0'),
      /^the opening line is not that of an account without rows/,
    ],
    [
      'the name',
      (all) => (all[2] = 'name "eve"'),
      /^the signature is not that of key \w{16} for these lines/,
    ],
    ['the end of the period', (all) => (all[4] = 'to -'), /^the signature is not/],
    [
      'the path to the root',
      (all) => change(all, lineAt(/^path right/), 'right', 'left'),
      /^the path does not lead/,
    ],
    ['a line behind the end', (all) => all.splice(-1, 1, 'more', ''), /stands behind the signature/],
    [
      'a row of another form',
      (all) => (all[row(3)] = `${all[row(3)]} `),
      /^line \d+ is not as a statement has it/,
    ],
    [
      'line ends of Windows',
      (all) => all.forEach((line, at) => (all[at] = `${line}\r`)),
      /^the file has line ends of Windows/,
    ],
  ])('%s', (_what, edit, fault) => {
    const [first] = faultsOf(edited(edit), keys);
    expect(first).toMatch(fault);
  });

  test('cut off after any of its bytes', () => {
    for (let length = 0; length < whole.length; length++)
      expect([length, faultsOf(whole.slice(0, length), keys)]).toEqual([length, [expect.any(String)]]);
    expect(faultsOf(whole.slice(0, whole.indexOf('closing')), keys)).toEqual([
      expect.stringContaining('the file is cut off: it ends in line'),
    ]);
  });

  test('any of its bytes is another one', () => {
    for (let at = 0; at < whole.length; at++) {
      const other = whole[at] === '0' ? '1' : '0';
      const changed = whole.slice(0, at) + other + whole.slice(at + 1);
      expect([at, faultsOf(changed, keys).length]).not.toEqual([at, 0]);
    }
  });
});

test('a statement of another key, signed by an unknown key, or with an unreadable list of keys is not valid', () => {
  expect(faultsOf(whole, [otherKey])).toEqual([`the key ${key.id} that signed is none of the 1 known keys`]);
  expect(faultsOf(whole, [])).toHaveLength(1);
  // The id of a key follows from the key, whatever a list says.
  expect(faultsOf(whole, [{ id: key.id, pem: otherKey.pem }])[0]).toMatch(/is none of the 1 known keys$/);
  expect(faultsOf(whole, [{ id: otherKey.id, pem: key.pem }])).toEqual([]);
});

test('rows of one account are refused under the name of another', () => {
  const mine = whole.split('\n');
  const others = stated({}, 'key_BBBBBBBBBBBB').split('\n');
  const mixed = [...mine.slice(0, 8), ...others.slice(8)].join('\n');
  expect(faultsOf(mixed, null)[0]).toMatch(/^row 1 was changed/);
});

describe('statements that are compared', () => {
  const read = (name: string, text: string) => ({ name, statement: readStatement(text) });

  test('agree where they overlap and where they meet', () => {
    const [first, second] = [stated({ proof: null }, keyId, 3), stated({}, keyId, 5, 3)];
    expect(compareStatements([read('a', first), read('b', second), read('c', whole)])).toEqual([]);
  });

  test('differ where the service told two stories, and where they are of two keys', () => {
    const restored = stated({}, keyId, 5).replaceAll('req_5', 'req_6');
    const story = readStatement(restored);
    expect(story.keyId).toBe(keyId);
    const other = linkRow(
      { number: 0, hash: noPrevious, balanceNanos: 0 },
      {
        number: 1,
        createdAtMs: 0,
        kind: 'credit',
        deltaNanos: 1,
        reference: null,
      },
    );
    const forked = stated({ opening: other, rows: [], closing: other, proof: null });
    expect(compareStatements([read('a', whole), read('b', forked)])).toEqual([
      'row 1 is another one in b than in a',
    ]);
    const foreign = stated({ proof: null }, 'key_BBBBBBBBBBBB');
    expect(compareStatements([read('a', whole), read('b', foreign)])[0]).toBe(
      'b is of another key than a: key_BBBBBBBBBBBB',
    );
  });
});

test.each([1, 2, 3, 4, 5, 8, 13])(
  'each of %i leaves of a tree has a path to its top, and no other one',
  (count) => {
    const leaves = Array.from({ length: count }, (_, at) =>
      leafOf({ keyId: `key_${at}`, number: 1, hash: noPrevious }),
    );
    const tree = buildTree(leaves);
    for (const [index, leaf] of leaves.entries()) {
      expect(followPath(leaf, pathOf(tree, index))).toBe(topOf(tree));
      const wrong = leafOf({ keyId: `key_${index}`, number: 2, hash: noPrevious });
      expect(followPath(wrong, pathOf(tree, index))).not.toBe(topOf(tree));
    }
  },
);
