import { ChainError } from '../../domain/ports/ledger-chain.ts';
import type { LedgerChain } from '../../domain/ports/ledger-chain.ts';
import type { Pause } from '../../domain/pause.ts';
import { linkRow, startOfChain } from '../../domain/statements/chain.ts';
import type { ChainState, LedgerRow } from '../../domain/statements/chain.ts';
import type { Engine, Row } from '../engine.ts';
import { readRows } from '../read-rows.ts';
import {
  insertSeal,
  readSeal,
  rowsPerStep,
  selectEnd,
  selectLastBefore,
  selectRows,
  selectSealUpTo,
  selectSealed,
} from './chain-statements.ts';

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
