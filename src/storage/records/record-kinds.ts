import type { RecordBeginning, SettledRecord } from '../../domain/money/consumption.ts';
import type { Price } from '../../domain/money/pricing.ts';
import { takeValues, typesOf } from '../engine.ts';
import type { FixedUnit, SqlValue, Taken } from '../engine.ts';

/** The values of a kind, in the order of its columns. */
export type Kind = readonly SqlValue[];

/** What a record has in common with others, while it is open or once it has ended. */
interface Common extends Pick<RecordBeginning, 'protocol' | 'mode' | 'model' | 'upstream' | 'tag' | 'group'> {
  /** The model's name at the upstream, where the record's row describes its one attempt; else empty. */
  readonly attemptModel: string;
  /** Empty, and 0, as long as it is open. */
  readonly outcome: string;
  readonly status: number;
  readonly usageSource: string;
  readonly price: Omit<Price, 'above'>;
}

/** The columns of a kind. */
const common: Taken<Common> = [
  ['protocol', 'text', ({ protocol }) => protocol],
  ['mode', 'text', ({ mode }) => mode],
  ['model', 'text', ({ model }) => model],
  ['upstream', 'text', ({ upstream }) => upstream],
  ['attempt_model', 'text', ({ attemptModel }) => attemptModel],
  ['tag', 'text', ({ tag }) => tag ?? ''],
  ['group_name', 'text', ({ group }) => group ?? ''],
  ['outcome', 'text', ({ outcome }) => outcome],
  ['status', 'bigint', ({ status }) => status],
  ['usage_source', 'text', ({ usageSource }) => usageSource],
  ['price_input', 'bigint', ({ price }) => price.input],
  ['price_cached_input', 'bigint', ({ price }) => price.cachedInput],
  ['price_cache_write', 'bigint', ({ price }) => price.cacheWrite],
  ['price_output', 'bigint', ({ price }) => price.output],
  ['price_request', 'bigint', ({ price }) => price.request],
];

/** The kind of a record as long as it is open. */
export function openKind(begun: Omit<RecordBeginning, 'holdNanos' | 'budgets'>): Kind {
  return takeValues(common, { ...begun, attemptModel: '', outcome: '', status: 0, usageSource: '' });
}

/** The kind of one that has ended. */
export function settledKind(record: SettledRecord, attemptModel: string): Kind {
  const { begun, outcome, status, usageSource } = record;
  const price = { ...(record.price ?? begun.price), request: begun.price.request };
  const upstream = record.upstream ?? begun.upstream;
  return takeValues(common, { ...begun, upstream, attemptModel, outcome, status, usageSource, price });
}

const names = common.map(([name]) => name);
const given = names.map((name) => `:${name}`).join(', ');
const select = `SELECT number FROM record_kinds WHERE (${names.join(', ')}) = (${given})`;

/** Finds the number of a kind, which gets the one that is given if it has none; nothing where another kind has that. */
export const numberKind: FixedUnit<'number_kind'> = {
  name: 'number_kind',
  takes: { number: 'bigint', ...typesOf(common) },
  spreadBy: 'model',
  mayBeForgotten: true,
  locks: [],
  preparations: [
    `INSERT INTO record_kinds (number, ${names.join(', ')}) SELECT :number, ${given} WHERE NOT EXISTS (${select}) ON CONFLICT DO NOTHING`,
  ],
  decisions: [select],
  decided: { number: 'bigint' },
  changes: [],
  columns: ['number'],
};

/** That a kind is there: a database that was restored may lack it, and its record could not be read. */
export const kindIsKnown = 'EXISTS (SELECT 1 FROM record_kinds WHERE record_kinds.number = :kind)';
