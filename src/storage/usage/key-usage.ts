import type { Row, Statement } from '../engine.ts';
import { planUsage, selectExtent } from './usage-plan.ts';
import type { TimeRange, UsageExtent } from './usage-plan.ts';
import { smallestKind } from './usage-kinds.ts';
import { selectSlice } from './usage-statements.ts';
import type { KeyRange } from './usage-statements.ts';

/** All times of which there can be usage. */
const always: TimeRange = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };

const byKey = new Set(['key'] as const);

export const selectWholeExtent: readonly Statement[] = selectExtent(always);

/** What some keys ever used. It belongs to the extent that was read at the same moment. */
export function selectKeyUsage(extent: UsageExtent, keys: KeyRange): Statement {
  const kinds = { day: smallestKind('day', byKey), month: smallestKind('month', byKey) };
  return selectSlice({
    groups: { period: null, dimensions: ['key'] },
    where: {},
    plan: planUsage(always, extent, kinds),
    kinds,
    slice: { time: always, keys },
    after: null,
    limit: Number.MAX_SAFE_INTEGER,
  });
}

/** What these keys were charged, in nano-USD, by their ids. */
export function readKeyUsage(rows: readonly Row[]): ReadonlyMap<string, number> {
  return new Map(rows.map((row) => [String(row['key_id']), Number(row['charge'])]));
}
