import type { Pause } from '../../domain/pause.ts';
import { ChainError } from '../../domain/ports/ledger-chain.ts';
import type { LedgerChain } from '../../domain/ports/ledger-chain.ts';
import { linkRow, startOfChain } from '../../domain/statements/chain.ts';
import type { ChainState, LedgerRow } from '../../domain/statements/chain.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readRows, sql } from '../statements.ts';

/** What chains are read with. */
type Reader = Pick<Engine, 'read'>;

/** Follows the chains of hashes over any engine, beside the units that write new rows. */
export function createLedgerChain(engine: Pick<Engine, 'read' | 'run'>): LedgerChain {
  return {
    async find(keyId, fromMs, toMs) {
      const times = [fromMs ?? Number.MIN_SAFE_INTEGER, toMs ?? Number.MAX_SAFE_INTEGER];
      // One snapshot: a row that is folded meanwhile would be taken for one that is not there yet.
      const [[end] = [], ...places] = await engine.read([
        selectEnd(keyId),
        ...times.map((atMs) => selectLastBefore(keyId, atMs)),
      ]);
      if (end === undefined) return null;
      const [folded, last] = [Number(end['folded']), Number(end['postings'])];
      const [from = 0, to = 0] = places.map(([row]) => Number(row?.['place']));
      return { folded, last, beforeFrom: Math.min(from, last), beforeTo: Math.min(to, last) };
    },
    stateAt: (keyId, number, pause) => stateAt(engine, keyId, number, pause),
    rows: async (keyId, after, upTo) => (await readLedgerRows(engine, keyId, after, upTo)).map(readRow),
    recompute: (...part) => recompute(engine, ...part),
  };
}

async function stateAt(
  engine: Pick<Engine, 'read' | 'run'>,
  keyId: string,
  number: number,
  pause: Pause,
): Promise<ChainState> {
  let state = await sealUpTo(engine, keyId, number);
  while (state.number < number) {
    const upTo = Math.min(number, nextSeal(state.number));
    state = await follow(engine, keyId, state, upTo);
    if (upTo === number) break;
    await engine.run([insertSeal(keyId, state)]);
    await pause();
  }
  return state;
}

/** The number of the next row behind one that is sealed. */
export function nextSeal(number: number): number {
  return (Math.floor(number / rowsPerStep) + 1) * rowsPerStep;
}

/** The last seal up to a row, or the start of the chain. Rejects with a `ChainError` if the row is folded behind it. */
async function sealUpTo(engine: Reader, keyId: string, number: number): Promise<ChainState> {
  const [[sealed] = [], [end] = []] = await engine.read([selectSealUpTo(keyId, number), selectEnd(keyId)]);
  const folded = Number(end?.['folded'] ?? 0);
  if (sealed !== undefined && Number(sealed['number']) >= Math.min(folded, number)) return readSeal(sealed);
  if (number < folded) throw new ChainError(`row ${number} of ${keyId} is folded`, true);
  return startOfChain(keyId, folded, Number(end?.['folded_balance'] ?? 0));
}

/** Follows a chain over at most `rowsPerStep` rows. */
async function follow(engine: Reader, keyId: string, from: ChainState, upTo: number): Promise<ChainState> {
  const rows = (await readLedgerRows(engine, keyId, from.number, upTo)).map(readRow);
  return linkAll(keyId, from, rows, upTo).at(-1) ?? from;
}

/** The states of a chain with each of some rows. Throws a `ChainError` where one is missing. */
function linkAll(
  keyId: string,
  from: ChainState,
  rows: readonly LedgerRow[],
  upTo: number,
): readonly ChainState[] {
  const states: ChainState[] = [];
  let state = from;
  for (const row of rows) {
    if (row.number !== state.number + 1) break;
    state = linkRow(state, row);
    states.push(state);
  }
  if (state.number === upTo) return states;
  throw new ChainError(`row ${state.number + 1} of ${keyId} is missing`, true);
}

/** As `LedgerChain.recompute`. */
export async function recompute(
  engine: Reader,
  keyId: string,
  after: number,
  upTo: number,
): Promise<ChainState> {
  let state = await sealUpTo(engine, keyId, after);
  while (state.number < upTo) {
    const next = Math.min(state.number + rowsPerStep, upTo);
    const [seals = [], heads = [], found = []] = await engine.read([
      ...selectSealed(keyId, state.number, next),
      selectRows(keyId, state.number, next),
    ]);
    const states = linkAll(keyId, state, found.map(readRow), next);
    for (const sealed of [...seals, ...heads]) {
      const number = Number(sealed['number']);
      if (states[number - state.number - 1]?.hash !== sealed['hash'])
        throw new ChainError(`the rows of ${keyId} up to ${number} are not those that were sealed`);
    }
    state = states.at(-1) ?? state;
  }
  return state;
}

function readLedgerRows(engine: Reader, keyId: string, after: number, upTo: number): Promise<readonly Row[]> {
  return readRows(engine, selectRows(keyId, after, upTo));
}

function readRow(row: Row): LedgerRow {
  return {
    number: Number(row['number']),
    createdAtMs: Number(row['created_at']),
    kind: row['kind'] === 'credit' ? 'credit' : 'charge',
    deltaNanos: Number(row['delta']),
    reference: row['reference'] === null ? null : String(row['reference']),
  };
}

/** How many rows of the ledger are hashed in one step, and lie between two seals: some milliseconds. */
export const rowsPerStep = 1_000;

/** The place from which a search by time begins, above the number of any row: a power of two. */
const searchedNumbers = 2 ** 40;

/** An account's last row, and what is folded of it. */
function selectEnd(keyId: string): Statement {
  return sql`SELECT coalesce(ledger_folds.number, 0) AS folded, coalesce(credits, 0) - coalesce(charges, 0) AS folded_balance,
      postings
    FROM accounts LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id WHERE accounts.key_id = ${keyId}`;
}

/**
 * The last row from before a time. The times of rows may be a little out of order, as nodes have clocks of their own, and no
 * index has them. So the number is searched bit by bit: each look asks for one row that never changes, and rows that come
 * later change no answer of an earlier one. Two periods that meet have no row in common, and none between them.
 */
function selectLastBefore(keyId: string, atMs: number): Statement {
  return sql`WITH RECURSIVE search (step, place) AS (
      SELECT CAST(${searchedNumbers} AS BIGINT), CAST(0 AS BIGINT)
      UNION ALL
      SELECT step / 2, CASE
        WHEN place + step <= coalesce((SELECT number FROM ledger_folds WHERE ledger_folds.key_id = ${keyId}), 0) OR EXISTS (
          SELECT 1 FROM ledger_rows WHERE key_id = ${keyId} AND number = place + step AND created_at < ${atMs}) OR EXISTS (
          SELECT 1 FROM record_rows WHERE account = (SELECT number FROM accounts WHERE key_id = ${keyId})
            AND charge_number = place + step AND created_at + settled_ms < ${atMs})
        THEN place + step ELSE place END
      FROM search WHERE step > 0)
    SELECT place FROM search WHERE step = 0`;
}

/** Rows of an account behind a number. */
function selectRows(keyId: string, after: number, upTo: number): Statement {
  return sql`SELECT number, created_at, kind, delta, coalesce(request_id, reference) AS reference FROM ledger
    WHERE key_id = ${keyId} AND number > ${after} AND number <= ${Math.min(upTo, after + rowsPerStep)} ORDER BY number`;
}

/** The last seal up to a row. */
function selectSealUpTo(keyId: string, number: number): Statement {
  return sql`SELECT number, hash, balance FROM ledger_seals WHERE key_id = ${keyId} AND number <= ${number} ORDER BY number DESC LIMIT 1`;
}

/** The next points of an account's chain that were written down: seals, and what roots have of it. */
function selectSealed(keyId: string, after: number, upTo: number): readonly Statement[] {
  return [
    sql`SELECT number, hash FROM ledger_seals WHERE key_id = ${keyId} AND number > ${after} AND number <= ${upTo}`,
    sql`SELECT number, hash FROM ledger_heads WHERE key_id = ${keyId} AND number > ${after} AND number <= ${upTo}`,
  ];
}

/** Seals a row; one that is sealed stays as it is. */
export function insertSeal(keyId: string, { number, hash, balanceNanos }: ChainState): Statement {
  return sql`INSERT INTO ledger_seals (key_id, number, hash, balance)
    VALUES (${keyId}, CAST(${number} AS BIGINT), ${hash}, CAST(${balanceNanos} AS BIGINT)) ON CONFLICT (key_id, number) DO NOTHING`;
}

function readSeal(row: Row): ChainState {
  return {
    number: Number(row['number']),
    hash: String(row['hash']),
    balanceNanos: Number(row['balance']),
  };
}
