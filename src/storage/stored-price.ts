import type { Price } from '../domain/pricing.ts';
import type { SqlValue } from './engine.ts';

/** A price in the order of its columns. */
export function valuesOfPrice({
  input,
  cachedInput,
  cacheWrite,
  output,
  request,
}: Price): readonly SqlValue[] {
  return [input, cachedInput, cacheWrite, output, request];
}
