import { priceAt } from '../../domain/money/price-changes.ts';
import { costOf, priceFor } from '../../domain/money/pricing.ts';
import type { PresentedKey } from '../../http/admin/keys.ts';
import type { PresentedRecord } from '../../http/present/record.ts';
import type { ListedTerms } from '../../prices/list-price.ts';
import { parseUsd } from '../../shared/money.ts';
import { readList, readPages } from '../admin-client.ts';
import { describeError } from '../describe-error.ts';
import { findRunningGateway } from '../running-gateway.ts';

/** What a list has of models, or why it has none, by their names; `*` stands for all. */
export type ListedPrices = ReadonlyMap<string, ListedTerms | string>;

/** What a key was charged, and would have been by other prices, in nano-USD. */
export interface KeyCharges {
  readonly id: string;
  readonly name: string;
  readonly chargedNanos: bigint;
  readonly laterNanos: bigint;
}

/** How far back records are read, in milliseconds: a week. */
const spanMs = 604_800_000;

/**
 * Reads the last week's records of the gateway that runs, and what each key was charged and would have been; those with the
 * largest change first; or why they are not known. A request is charged anew by its tokens and its time where its model is
 * one of `changed`; what was free, as after a failure, stays so.
 */
export async function readKeyCharges(
  later: ListedPrices,
  changed: ReadonlySet<string>,
): Promise<readonly KeyCharges[] | string> {
  if (!(await findRunningGateway()).isThere) return 'no gateway answers';
  try {
    return await compareCharges(later, changed);
  } catch (error) {
    // The prices are shown all the same.
    return describeError(error);
  }
}

async function compareCharges(
  later: ListedPrices,
  changed: ReadonlySet<string>,
): Promise<readonly KeyCharges[]> {
  const sums = new Map<string, { chargedNanos: bigint; laterNanos: bigint }>();
  const from = new Date(Date.now() - spanMs).toISOString();
  for await (const records of readPages<PresentedRecord>('/admin/records', `from=${from}`))
    for (const record of records) {
      const nanos = parseUsd(record.charge) ?? 0;
      if (nanos === 0) continue;
      const sum = sums.get(record.key_id) ?? { chargedNanos: 0n, laterNanos: 0n };
      sums.set(record.key_id, sum);
      sum.chargedNanos += BigInt(nanos);
      sum.laterNanos += BigInt(chargeAnew(record, later, changed) ?? nanos);
    }
  const keys = await readList<PresentedKey>('/admin/keys');
  const names = new Map(keys.map(({ id, name }) => [id, name]));
  const all = [...sums].map(([id, sum]) => Object.assign({ id, name: names.get(id) ?? id }, sum));
  return all.toSorted((one, other) => Number(changeOf(other) - changeOf(one)));
}

/** The charge of a request by the later list; `null` where it would be the same, or is not known. */
function chargeAnew(
  { model, usage, created_at: createdAt }: PresentedRecord,
  later: ListedPrices,
  changed: ReadonlySet<string>,
): number | null {
  const name = changed.has('*') ? '*' : (model ?? '');
  const terms = later.get(name);
  if (!changed.has(name) || usage === null || terms === undefined || typeof terms === 'string') return null;
  const tokens = {
    inputTokens: usage.input_tokens,
    cachedInputTokens: usage.cached_input_tokens,
    cacheWriteTokens: usage.cache_write_tokens,
    outputTokens: usage.output_tokens,
  };
  return costOf(tokens, priceFor(priceAt(terms, Date.parse(createdAt)), usage.input_tokens));
}

function changeOf({ chargedNanos, laterNanos }: Omit<KeyCharges, 'id' | 'name'>): bigint {
  return laterNanos > chargedNanos ? laterNanos - chargedNanos : chargedNanos - laterNanos;
}
