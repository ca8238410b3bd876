import type { OpenedRecord } from '../../domain/money/consumption.ts';
import type { SqlValue } from '../engine.ts';

/** How a record began, but for its key and hold: the values that its opening writes and its settlement repeats, in order. */
export function valuesOfBeginning({
  createdAtMs,
  protocol,
  mode,
  model,
  upstream,
  queuedMs,
  price,
  tag,
  group,
}: Omit<OpenedRecord, 'requestId' | 'keyId' | 'hold' | 'budgets'>): readonly SqlValue[] {
  const { input, cachedInput, cacheWrite, output, request } = price;
  const prices = [input, cachedInput, cacheWrite, output, request];
  return [createdAtMs, protocol, mode, model, upstream, Math.round(queuedMs), ...prices, tag, group];
}
