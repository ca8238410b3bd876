import { isUnanswered, outcomes } from '../../domain/money/consumption.ts';
import type { RecordFilter } from '../../domain/money/consumption.ts';
import type { Statement } from '../engine.ts';
import { outcomeOf } from '../schema/requests.ts';
import { joined, listOf, raw, sql } from '../statements.ts';
import type { RequestKey } from './request-key.ts';

/** The time of a filter, and a place behind which its records are. */
export function placeConditions({ from, to }: RecordFilter, before: RequestKey | null): readonly Statement[] {
  const conditions: Statement[] = [];
  if (from !== undefined) conditions.push(sql`created_at >= ${from}`);
  // With both bounds at once SQLite searches by the time only, and reads every page before this one again.
  if (before !== null && (to === undefined || before.createdAtMs < to))
    conditions.push(sql`(created_at, tail) < (${before.createdAtMs}, unhex(${before.tail}))`);
  else if (to !== undefined) conditions.push(sql`created_at < ${to}`);
  return conditions;
}

/** What a filter asks of how a request began, of the columns of a kind or of a view. */
export function beginningConditions({ model, upstream, tag, group }: RecordFilter): readonly Statement[] {
  const conditions: Statement[] = [];
  if (model !== undefined) conditions.push(sql`model = ${model}`);
  if (upstream !== undefined) conditions.push(sql`upstream = ${upstream}`);
  if (tag !== undefined) conditions.push(sql`coalesce(tag, '') = ${tag}`);
  if (group !== undefined) conditions.push(sql`coalesce(group_name, '') = ${group}`);
  return conditions;
}

/** What a filter asks of the kind of an ended record, of the columns of `record_kinds`. */
export function kindConditions(filter: RecordFilter): readonly Statement[] {
  const { outcome, status } = filter;
  const conditions = [...beginningConditions(filter)];
  if (outcome !== undefined) conditions.push(sql`${raw(outcomeOf('record_kinds'))} = ${outcome}`);
  if (status !== undefined)
    conditions.push(sql`CASE WHEN record_kinds.outcome = '' THEN 500 ELSE status END = ${status}`);
  return conditions;
}

/** What a filter asks of the numbers of an ended record, whose columns are those of `passed`. */
export function figureConditions(filter: RecordFilter): readonly Statement[] {
  const { minDurationMs, maxDurationMs, minChargeNanos } = filter;
  const conditions: Statement[] = [];
  if (minDurationMs !== undefined) conditions.push(sql`passed.total_ms >= ${minDurationMs}`);
  if (maxDurationMs !== undefined) conditions.push(sql`passed.total_ms <= ${maxDurationMs}`);
  if (minChargeNanos !== undefined) conditions.push(sql`passed.charge >= ${minChargeNanos}`);
  return conditions;
}

/** Whether a filter asks for what only the end of a request decides. */
export function asksOfEnd(filter: RecordFilter): boolean {
  const { outcome, status } = filter;
  return figureConditions(filter).length > 0 || saysOfFailure(filter) || (outcome ?? status) !== undefined;
}

/** Whether a filter asks for what only failures have. */
export function saysOfFailure(filter: RecordFilter): boolean {
  return (filter.cause ?? filter.hasFailed) !== undefined;
}

/**
 * The records in which a cause may be, of the columns of `passed`: all of those that say it (`saysCause`) and some others, as a
 * text may also be a part of the names in their JSON.
 */
export function mayHaveCause(cause: string): Statement {
  const asJson = JSON.stringify(cause).slice(1, -1);
  const said = [sql`instr(passed.attempts, ${asJson}) > 0`, sql`instr(passed.failure, ${asJson}) > 0`];
  const ends = outcomes.filter((outcome) => isUnanswered(outcome) && outcome.includes(cause));
  if (ends.length > 0)
    said.push(
      sql`passed.kind IN (SELECT number FROM record_kinds WHERE ${raw(outcomeOf('record_kinds'))} IN (${listOf(ends)}))`,
    );
  return sql`(${joined(said, ' OR ')})`;
}
