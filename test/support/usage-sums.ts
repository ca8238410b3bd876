import { usageDimensions, usagePeriods } from '../../src/domain/ports/usage.ts';
import type { Usage, UsageGroup, UsageQuery, UsageRow } from '../../src/domain/ports/usage.ts';
import type { Row } from '../../src/storage/engine.ts';

/** What a test keeps of every record that ever was, by its id, as it was last. */
export type KeptRecords = Map<string, Row>;

export type AskedUsage = Omit<UsageQuery, 'limit' | 'after'>;

/** The beginning of the period that a time is in. */
function startOf(period: UsageGroup, atMs: number): number {
  const at = new Date(atMs);
  const [year, month, day, hour] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCHours()];
  if (period === 'month') return Date.UTC(year, month);
  return period === 'day' ? Date.UTC(year, month, day) : Date.UTC(year, month, day, hour);
}

/** Adds usage up from the records alone. */
export function sumRecords(
  records: KeptRecords,
  { by, fromMs, toMs, where }: AskedUsage,
): readonly UsageRow[] {
  const period = usagePeriods.find((one) => by.includes(one));
  const sums = new Map<string, { order: readonly (number | string)[]; row: Record<string, unknown> }>();
  for (const record of records.values()) {
    const at = Number(record['created_at']);
    const text = (column: string): string => String(record[column] ?? '');
    const values = {
      key: text('key_id'),
      group: text('group_name'),
      model: text('model'),
      upstream: text('upstream'),
      outcome: text('outcome'),
      tag: text('tag'),
    };
    if (at < fromMs || at >= toMs) continue;
    if (where.keyId !== undefined && where.keyId !== values.key) continue;
    if (where.group !== undefined && (where.group ?? '') !== values.group) continue;
    if (where.model !== undefined && where.model !== values.model) continue;
    if (where.upstream !== undefined && where.upstream !== values.upstream) continue;
    if (where.outcome !== undefined && where.outcome !== values.outcome) continue;
    if (where.tag !== undefined && (where.tag ?? '') !== values.tag) continue;
    const order = [
      ...(period === undefined ? [] : [startOf(period, at)]),
      ...usageDimensions.filter((one) => by.includes(one)).map((one) => values[one]),
    ];
    const name = JSON.stringify(order);
    const row = sums.get(name)?.row ?? {
      ...(period === undefined ? {} : { startMs: startOf(period, at) }),
      ...(by.includes('key') ? { keyId: values.key } : {}),
      ...(by.includes('group') ? { group: values.group === '' ? null : values.group } : {}),
      ...(by.includes('model') ? { model: values.model } : {}),
      ...(by.includes('upstream') ? { upstream: values.upstream } : {}),
      ...(by.includes('outcome') ? { outcome: values.outcome } : {}),
      ...(by.includes('tag') ? { tag: values.tag === '' ? null : values.tag } : {}),
    };
    const add = (field: string, amount: number): void => void (row[field] = Number(row[field] ?? 0) + amount);
    add('requests', 1);
    add('inputTokens', Number(record['input_tokens'] ?? 0));
    add('cachedInputTokens', Number(record['cached_input_tokens'] ?? 0));
    add('cacheWriteTokens', Number(record['cache_write_tokens'] ?? 0));
    add('outputTokens', Number(record['output_tokens'] ?? 0));
    add('reasoningTokens', Number(record['reasoning_tokens'] ?? 0));
    row['chargeNanos'] = BigInt(Number(row['chargeNanos'] ?? 0)) + BigInt(Number(record['charge']));
    sums.set(name, { order, row });
  }
  return [...sums.values()]
    .toSorted((a, b) => compare(a.order, b.order))
    .map(({ row }) => row as unknown as UsageRow);
}

/** Numbers by their size, and texts by their bytes. */
function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [at, one] of a.entries()) {
    const other = b[at] ?? '';
    const order =
      typeof one === 'number'
        ? one - Number(other)
        : Buffer.compare(Buffer.from(one), Buffer.from(String(other)));
    if (order !== 0) return order;
  }
  return 0;
}

/** Reads usage to its end, a page at a time. */
export async function readUsage(
  usage: Usage,
  query: AskedUsage,
  limit: number,
): Promise<readonly UsageRow[]> {
  const rows: UsageRow[] = [];
  for (let after: string | null = null; ;) {
    const page = await usage.usage({ ...query, limit, after });
    if (page === null) throw new Error('a page names a cursor that is none');
    if (page.rows.length > limit) throw new Error('a page has more rows than were asked for');
    rows.push(...page.rows);
    if (page.next === null) return rows;
    if (page.next === after) throw new Error('a page ends where it begins');
    after = page.next;
  }
}
