import type { Usage, UsageQuery, UsageRow } from '../../domain/ports/usage.ts';
import { usageDimensions } from '../../domain/ports/usage.ts';
import type { Engine } from '../engine.ts';
import { readRows } from '../read-rows.ts';

const columnOf = {
  key: 'key_id',
  model: 'model',
  upstream: 'upstream',
  outcome: 'outcome',
  tag: 'tag',
} as const;

/** Reads usage from the sums of hours alone. */
export function createUsage(engine: Engine): Usage {
  return {
    async usage({ by, fromMs, toMs, where, limit, after }: UsageQuery) {
      const start = after === null ? 0 : Number(/^p(\d+)$/.exec(after)?.[1] ?? Number.NaN);
      if (Number.isNaN(start)) return null;
      const { keyId, model, upstream, outcome, tag } = where;
      const filters = Object.entries({
        key_id: keyId,
        model,
        upstream,
        outcome,
        tag: tag === null ? '' : tag,
      }).filter(([, v]) => v !== undefined);
      const rows = await readRows(engine, {
        sql: `SELECT * FROM usage_hours WHERE hour >= ? AND hour < ?${filters.map(([name]) => ` AND ${name} = ?`).join('')} ORDER BY hour, key_id, model, upstream, outcome, tag`,
        values: [fromMs, toMs, ...filters.map(([, value]) => value as string)],
      });
      const sums = new Map<string, Record<string, unknown>>();
      for (const row of rows) {
        const hour = new Date(Number(row['hour']));
        const startMs = by.includes('day')
          ? Math.floor(hour.getTime() / 86_400_000) * 86_400_000
          : by.includes('month')
            ? Date.UTC(hour.getUTCFullYear(), hour.getUTCMonth())
            : by.includes('hour')
              ? hour.getTime()
              : undefined;
        const dims = usageDimensions
          .filter((name) => by.includes(name))
          .map((name) => [name, String(row[columnOf[name]])] as const);
        const id = JSON.stringify([startMs, dims]);
        const sum = sums.get(id) ?? {
          ...(startMs === undefined ? {} : { startMs }),
          ...Object.fromEntries(
            dims.map(([name, v]) =>
              name === 'key' ? ['keyId', v] : name === 'tag' ? ['tag', v === '' ? null : v] : [name, v],
            ),
          ),
          requests: 0,
          inputTokens: 0,
          cachedInputTokens: 0,
          cacheWriteTokens: 0,
          outputTokens: 0,
          reasoningTokens: 0,
          chargeNanos: 0n,
        };
        for (const [field, column] of Object.entries({
          requests: 'requests',
          inputTokens: 'input_tokens',
          cachedInputTokens: 'cached_input_tokens',
          cacheWriteTokens: 'cache_write_tokens',
          outputTokens: 'output_tokens',
          reasoningTokens: 'reasoning_tokens',
        }))
          sum[field] = Number(sum[field]) + Number(row[column]);
        sum['chargeNanos'] = (sum['chargeNanos'] as bigint) + BigInt(row['charge'] as number);
        sums.set(id, sum);
      }
      const all = [...sums.entries()]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([, sum]) => sum)
        .filter((sum) => sum['requests'] !== 0 || sum['chargeNanos'] !== 0n) as unknown as UsageRow[];
      const page = all.slice(start, start + limit);
      return { rows: page, next: start + limit < all.length ? `p${start + limit}` : null };
    },
  };
}
