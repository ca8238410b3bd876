import { rowHashLength } from './write-statement.ts';
import { linkHash, startOfChain } from './chain.ts';
import { followPath, hashOfRootLine, leafOf } from './root.ts';
import { isSigned, readPublicKey } from '../../shared/signing-key.ts';
import type { PublicKey } from '../../shared/signing-key.ts';
import type { StatedRow, StatedStatement } from './read-statement.ts';

/** What is known of the root of a statement whose account is in it. */
export interface FoundRoot {
  readonly number: number;
  readonly hash: string;
  /** Whether the rows of this statement lead to the hash that the root has of the account, or others would have to. */
  readonly coversRows: boolean;
}

/**
 * Checks a statement against itself, and its signature against some keys; `null` leaves the signature unchecked. It is valid when
 * nothing is wrong and its signature was checked.
 */
export function checkStatement(
  statement: StatedStatement,
  keys: readonly Pick<PublicKey, 'id' | 'pem'>[] | null,
) {
  const rows = checkRows(statement);
  const { root, faults } = checkRoot(statement, rows.hashes);
  return {
    /** Each says what is wrong, and where. */
    faults: [...rows.faults, ...faults, ...(keys === null ? [] : checkSignature(statement, keys))],
    isSignatureChecked: keys !== null,
    root,
  };
}

/** Follows the rows from the opening to the closing line. Once the chain is broken, it can't be followed any further. */
function checkRows({ keyId, opening, closing, rows }: StatedStatement): {
  readonly faults: readonly string[];
  readonly hashes: ReadonlyMap<number, string>;
} {
  const hashes = new Map([[opening.number, opening.hash]]);
  if (opening.number === 0 && (opening.hash !== startOfChain(keyId).hash || opening.balanceNanos !== 0n))
    return { faults: ['the opening line is not that of an account without rows: it was changed'], hashes };
  let last = opening;
  for (const row of rows) {
    const fault = whyNotNext(row, last.number + 1, rows);
    if (fault !== null) return { faults: [fault], hashes };
    if (last.balanceNanos + row.deltaNanos !== row.balanceNanos)
      return {
        faults: [
          `row ${row.number}: its balance is not the one before it and its amount: one of them was changed`,
        ],
        hashes,
      };
    const hash = linkHash(last.hash, row.text);
    if (hash.slice(0, rowHashLength) !== row.check)
      return { faults: [`row ${row.number} was changed: its hash is another one`], hashes };
    hashes.set(row.number, hash);
    last = { number: row.number, hash, balanceNanos: row.balanceNanos };
  }
  const faults: string[] = [];
  if (closing.number !== last.number)
    faults.push(
      closing.number > last.number
        ? `rows ${last.number + 1} to ${closing.number} are missing before the closing line`
        : `the closing line says ${closing.number}, but the last row is ${last.number}`,
    );
  else if (closing.balanceNanos !== last.balanceNanos)
    faults.push('the closing balance is not that of the last row: it was changed');
  else if (closing.hash !== last.hash)
    faults.push(
      'the hash of the closing line is not that of the rows: the opening or the closing line was changed',
    );
  return { faults, hashes };
}

/** Why a row is not the next one; `null` where it is. */
function whyNotNext({ number }: StatedRow, expected: number, rows: readonly StatedRow[]): string | null {
  if (number === expected) return null;
  if (rows.some((row) => row.number === expected))
    return `row ${number} stands where row ${expected} belongs: the order was changed`;
  return number > expected
    ? `row ${expected} is missing: row ${number} stands in its place`
    : `row ${number} stands where row ${expected} belongs`;
}

/** Follows the path from the account to the root, and holds the hash that the root has of the account against the rows. */
function checkRoot(
  { keyId, root }: StatedStatement,
  hashes: ReadonlyMap<number, string>,
): { readonly root: FoundRoot | null; readonly faults: readonly string[] } {
  if (root === null) return { root: null, faults: [] };
  const { number, head, path, tree } = root;
  if (followPath(leafOf({ keyId, ...head }), path) !== tree)
    return {
      root: null,
      faults: [`the path does not lead from this account to root ${number}: it was changed`],
    };
  const own = hashes.get(head.number);
  if (own !== undefined && own !== head.hash)
    return {
      root: null,
      faults: [
        `root ${number} has another hash of row ${head.number} than this statement: the rows are not those it has`,
      ],
    };
  return { root: { number, hash: hashOfRootLine(root.text), coversRows: own !== undefined }, faults: [] };
}

function checkSignature(
  { signedBy, signature, signed }: StatedStatement,
  keys: readonly Pick<PublicKey, 'id' | 'pem'>[],
): readonly string[] {
  const found = keys.map(({ pem }) => readPublicKey(pem)).find(({ id }) => id === signedBy);
  if (found === undefined)
    return [`the key ${signedBy} that signed is none of the ${keys.length} known keys`];
  return isSigned(signed, signature, found.key)
    ? []
    : [
        `the signature is not that of key ${signedBy} for these lines: the file was changed, or another key signed it`,
      ];
}

/** A statement with where it was read. */
export interface NamedStatement {
  readonly name: string;
  readonly statement: StatedStatement;
}

/**
 * Holds statements of one account against each other: where two know the same row, it must have the same hash, and so must
 * roots of the same number. Otherwise the service has told two stories, as after a restore of an older backup.
 */
export function compareStatements(statements: readonly NamedStatement[]): readonly string[] {
  const faults: string[] = [];
  const [first] = statements;
  const points = new Map<string, { readonly name: string; readonly hash: string }>();
  const note = (what: string, name: string, hash: string): void => {
    const known = points.get(what);
    if (known === undefined) points.set(what, { name, hash });
    else if (known.hash !== hash) faults.push(`${what} is another one in ${name} than in ${known.name}`);
  };
  for (const { name, statement } of statements) {
    if (first !== undefined && statement.keyId !== first.statement.keyId)
      faults.push(`${name} is of another key than ${first.name}: ${statement.keyId}`);
    for (const [number, hash] of checkRows(statement).hashes) note(`row ${number}`, name, hash);
    const { root } = statement;
    if (root === null) continue;
    note(`row ${root.head.number}`, name, root.head.hash);
    note(`root ${root.number}`, name, hashOfRootLine(root.text));
    note(`root ${root.number - 1}`, name, root.previous);
  }
  return faults;
}

/**
 * The rows between statements of one account that none of them has, as lines for people. They are no fault of the service: a
 * period that was asked for before it was over ends with the rows that were there then.
 */
export function rowsBetween(statements: readonly NamedStatement[]): readonly string[] {
  const ranges = statements
    .map(({ statement: { opening, closing } }) => [opening.number, closing.number] as const)
    .toSorted(([one], [other]) => one - other);
  let last = ranges[0]?.[0] ?? 0;
  return ranges.flatMap(([opening, closing]) => {
    const between = opening > last ? [`rows ${last + 1} to ${opening} are in none of these files`] : [];
    last = Math.max(last, closing);
    return between;
  });
}
