import { auditChainId, linkAuditLine, startOfAudit } from '../../domain/audit/audit-line.ts';
import type { AuditEntry } from '../../domain/audit/audit-line.ts';
import { nameOf } from '../../domain/audit/safe-text.ts';
import type { Pause } from '../../domain/pause.ts';
import type { AuditChain, HashedLine } from '../../domain/ports/audit.ts';
import { ChainError } from '../../domain/ports/ledger-chain.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { insertSeal } from '../ledger/ledger-chain.ts';
import { readRows, sql } from '../statements.ts';
import { addLines, readLine, selectLinesBehind } from './audit-lines.ts';

/** How many lines are read, hashed, sealed and removed at once: some milliseconds. */
const linesPerStep = 500;

type Reader = Pick<Engine, 'read'>;

/** The chain up to one of its lines. */
interface Point {
  readonly number: number;
  readonly hash: string;
}

/**
 * The chain of hashes over the lines of the audit. Lines are stored without a hash, so that no process waits for the hash of
 * another one: their numbers have no gap, and the chain follows from them. Each root of the ledger has the last line by then,
 * which is sealed, and so is one at least of as many lines as one step has: old lines are removed from seal to seal, and the
 * chain goes on from there. A removal leaves a line, without which it is a fault.
 */
export function createAuditChain(engine: Pick<Engine, 'read' | 'run'>, nowMs: () => number): AuditChain {
  return {
    async head(pause) {
      const [[chain] = [], [head] = [], [seal] = []] = await engine.read([
        selectChain,
        selectPoint('heads'),
        selectPoint('seals'),
      ]);
      const last = Number(chain?.['last'] ?? 0);
      if (last <= Number(head?.['number'] ?? 0)) return null;
      let point = pointOf(seal);
      for await (const lines of follow(engine, point, last, pause)) {
        point = lines.at(-1) ?? point;
        await engine.run([insertSeal(auditChainId, { ...point, balanceNanos: 0 })]);
      }
      return { keyId: auditChainId, number: point.number, hash: point.hash };
    },
    async removeBefore(beforeMs, archive, pause) {
      let count = await removeUncounted(engine, pause);
      for (;;) {
        const [[start] = [], [end] = []] = await engine.read([selectStart, selectRemovable(beforeMs)]);
        if (end === undefined) return count;
        const from = pointOf(start);
        const { lines } = await readStep(engine, from, Number(end['number']));
        const last = lines.at(-1);
        // Lines that are not those that were sealed are evidence, and stay, with all behind them.
        if (last === undefined || last.hash !== end['hash']) {
          // Another process that had the duty before may have removed them meanwhile.
          if (pointOf((await readRows(engine, selectStart))[0]).number > from.number) {
            await pause();
            continue;
          }
          throw new ChainError(
            `the lines of the audit up to ${end['number']} are not those that were sealed`,
          );
        }
        await archive?.append(lines);
        await engine.run([
          addLines([removalOf(lines.length, last.number)], nowMs(), isYetToRemove(last.number)),
          sql`UPDATE audit_chain SET removed = ${last.number} WHERE id = 1 AND removed < ${last.number}`,
        ]);
        count += await removeUncounted(engine, pause);
        await pause();
      }
    },
  };
}

/** What contradicts the seals and roots of the audit's lines. Lines that are removed meanwhile were held against them then. */
export async function* auditFaults(engine: Reader, pause: Pause): AsyncGenerator<readonly string[]> {
  const [[chain] = [], [start] = [], heads = [], seals = [], [removal] = []] = await engine.read([
    selectChain,
    selectStart,
    selectHeads,
    selectSeals,
    selectRemoval,
  ]);
  const sealed = new Map(seals.map(entryOf));
  let last = Number(chain?.['last'] ?? 0);
  // Who changes a line and its seal alike has the heads of the roots against it.
  for (const [number, hash] of [...heads, ...seals].map(entryOf)) {
    if ((sealed.get(number) ?? hash) !== hash)
      yield [`the seal of line ${number} of the audit is not the head of its root`];
    sealed.set(number, hash);
    last = Math.max(last, number);
  }
  let good = pointOf(start);
  const removed = Number(chain?.['removed'] ?? 0);
  if (start === undefined && removed > 0)
    yield ['the seal of the lines that were removed from the audit is missing'];
  if (removed > 0 && removal === undefined)
    yield [`the line that says that those of the audit up to ${removed} were removed is missing`];
  try {
    for await (const lines of follow(engine, good, last, pause))
      for (const line of lines) {
        if ((sealed.get(line.number) ?? line.hash) !== line.hash)
          throw new ChainError(`the lines of the audit up to ${line.number} are not those that were sealed`);
        good = line;
      }
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    const [again] = await readRows(engine, selectStart);
    if (Number(again?.['number'] ?? 0) > good.number) yield* auditFaults(engine, pause);
    else yield [error.message];
  }
}

/** Follows the chain from a point to a line, some lines at a time. Throws a `ChainError` where one is missing. */
async function* follow(
  engine: Reader,
  from: Point,
  upTo: number,
  pause: Pause,
): AsyncGenerator<readonly HashedLine[]> {
  let point = from;
  while (point.number < upTo) {
    const { lines, isBroken } = await readStep(engine, point, upTo);
    point = lines.at(-1) ?? point;
    if (lines.length > 0) yield lines;
    if (isBroken) throw new ChainError(`line ${point.number + 1} of the audit is missing`);
    if (point.number < upTo) await pause();
  }
}

/** The next lines of the chain behind a point, up to one, and whether the one behind them is missing. */
async function readStep(engine: Reader, from: Point, upTo: number) {
  let { number, hash } = from;
  const rows = await readRows(engine, selectLinesBehind(number, Math.min(linesPerStep, upTo - number)));
  const lines: HashedLine[] = [];
  for (const line of rows.map(readLine)) {
    if (line.number !== number + 1) break;
    hash = linkAuditLine(hash, line);
    number = line.number;
    lines.push({ ...line, hash });
  }
  return { lines, isBroken: lines.length < rows.length || rows.length === 0 };
}

/** Removes the lines that count as removed, some at a time. Resolves with how many. */
async function removeUncounted(engine: Pick<Engine, 'run'>, pause: Pause): Promise<number> {
  for (let count = 0; ; await pause()) {
    const [rows = []] = await engine.run([deleteRemoved]);
    count += rows.length;
    if (rows.length < linesPerStep) return count;
  }
}

/** The line about lines that are removed up to one. */
function removalOf(times: number, upTo: number): AuditEntry {
  const actor = { way: 'config', name: null, address: null } as const;
  const subject = nameOf(String(upTo));
  return { actor, action: 'audit.remove', keyId: null, subject, result: 'done', times, changes: [] };
}

/** Whether another process that had the duty before has not removed them meanwhile. */
function isYetToRemove(upTo: number): Statement {
  return sql`(SELECT removed FROM audit_chain WHERE id = 1) < ${upTo}`;
}

function entryOf(row: Row): readonly [number: number, hash: string] {
  return [Number(row['number']), String(row['hash'])];
}

function pointOf(row: Row | undefined): Point {
  return row === undefined
    ? { number: 0, hash: startOfAudit }
    : { number: Number(row['number']), hash: String(row['hash']) };
}

const selectChain: Statement = sql`SELECT last, removed FROM audit_chain WHERE id = 1`;

/** The newest seal, or the newest head of a root. */
function selectPoint(of: 'seals' | 'heads'): Statement {
  return of === 'seals'
    ? sql`SELECT number, hash FROM ledger_seals WHERE key_id = ${auditChainId} ORDER BY number DESC LIMIT 1`
    : sql`SELECT number, hash FROM ledger_heads WHERE key_id = ${auditChainId} ORDER BY root DESC LIMIT 1`;
}

const selectHeads: Statement = sql`SELECT number, hash FROM ledger_heads WHERE key_id = ${auditChainId}`;

const selectSeals: Statement = sql`SELECT number, hash FROM ledger_seals WHERE key_id = ${auditChainId}`;

/** The seal of the last line that was removed, behind which the chain begins. */
const selectStart: Statement = sql`SELECT number, hash FROM ledger_seals
  WHERE key_id = ${auditChainId} AND number = (SELECT removed FROM audit_chain WHERE id = 1)`;

/** The line of the last removal. */
const selectRemoval: Statement = sql`SELECT number FROM audit_lines
  WHERE action = 'audit.remove' AND subject = (SELECT CAST(removed AS TEXT) FROM audit_chain WHERE id = 1) LIMIT 1`;

/** The furthest seal of a step before which all lines that are left are from before a time. */
function selectRemovable(beforeMs: number): Statement {
  return sql`SELECT number, hash FROM ledger_seals
    WHERE key_id = ${auditChainId} AND number > (SELECT removed FROM audit_chain WHERE id = 1)
      AND number < coalesce((SELECT min(number) FROM audit_lines WHERE created_at >= ${beforeMs}),
        (SELECT last + 1 FROM audit_chain WHERE id = 1))
      AND number <= (SELECT removed FROM audit_chain WHERE id = 1) + ${linesPerStep}
    ORDER BY number DESC LIMIT 1`;
}

const deleteRemoved: Statement = sql`DELETE FROM audit_lines WHERE number IN (
    SELECT number FROM audit_lines WHERE number <= (SELECT removed FROM audit_chain WHERE id = 1)
    ORDER BY number LIMIT ${linesPerStep})
  RETURNING number`;
