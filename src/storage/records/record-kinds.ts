import type { RecordBeginning, SettledRecord } from '../../domain/money/consumption.ts';
import { kindNames } from '../schema/requests.ts';
import type { FixedUnit, SqlValue } from '../engine.ts';

/** The values of a kind, in the order of `kindNames`. */
export type Kind = readonly SqlValue[];

/** What a record has in common with others as long as it is open. */
export function openKind(begun: Omit<RecordBeginning, 'holdNanos' | 'budgets'>): Kind {
  return kindOf(begun, begun.upstream, '', { outcome: '', status: 0, usageSource: '' }, begun.price);
}

/** The same of one that has ended; `attemptModel` is empty where its row does not describe its one attempt. */
export function settledKind(record: SettledRecord, attemptModel: string): Kind {
  const { begun, upstream, price } = record;
  const applied = price === null ? begun.price : { ...price, request: begun.price.request };
  return kindOf(begun, upstream ?? begun.upstream, attemptModel, record, applied);
}

function kindOf(
  { protocol, mode, model, tag, group }: Omit<RecordBeginning, 'holdNanos' | 'budgets'>,
  upstream: string,
  attemptModel: string,
  end: { readonly outcome: string; readonly status: number; readonly usageSource: string },
  price: RecordBeginning['price'],
): Kind {
  const { outcome, status, usageSource } = end;
  const { input, cachedInput, cacheWrite, output, request } = price;
  const named = [protocol, mode, model, upstream, attemptModel, tag ?? '', group ?? ''];
  return [...named, outcome, status, usageSource, input, cachedInput, cacheWrite, output, request];
}

const given = kindNames.map((name) => `:${name}`).join(', ');
const select = `SELECT number FROM record_kinds WHERE (${kindNames.join(', ')}) = (${given})`;

/** Finds the number of a kind, which gets the one that is given if it has none; nothing where another kind has that. */
export const numberKind: FixedUnit<'number_kind'> = {
  name: 'number_kind',
  takes: {
    number: 'bigint',
    ...Object.fromEntries(
      kindNames.map((name) => [name, name === 'status' || name.startsWith('price_') ? 'bigint' : 'text']),
    ),
  },
  spreadBy: 'model',
  mayBeForgotten: true,
  locks: [],
  preparations: [
    `INSERT INTO record_kinds (number, ${kindNames.join(', ')}) SELECT :number, ${given} WHERE NOT EXISTS (${select}) ON CONFLICT DO NOTHING`,
  ],
  decisions: [select],
  decided: { number: 'bigint' },
  changes: [],
  columns: ['number'],
};
