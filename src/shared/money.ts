/** Amounts are integers of nano-USD, a billionth of a dollar, so that sums are exact. */
export const nanosPerUsd = 1_000_000_000;
const decimals = 9;

/** The largest amount, in nano-USD: a larger number would lose its last digits. */
export const maxNanos = Number.MAX_SAFE_INTEGER;

/** Reads a decimal string of USD (`"5"`, `"0.000000001"`) into nano-USD; `null` for anything else or a larger amount. */
export function parseUsd(text: string): number | null {
  const match = /^(\d{1,16})(?:\.(\d{1,9}))?$/.exec(text);
  if (match === null) return null;
  const [, whole = '', fraction = ''] = match;
  const nanos = BigInt(whole) * BigInt(nanosPerUsd) + BigInt(fraction.padEnd(decimals, '0'));
  return nanos > BigInt(maxNanos) ? null : Number(nanos);
}

/** The largest exponent, up or down, that `plainDecimal` writes out; amounts need no larger one. */
const maxExponent = 30;

/**
 * Writes a number's text as a plain decimal with the same digits: `1e-7` as `0.0000001`, `.1500` as `0.15`. A text that is
 * no such number is returned as it is.
 */
export function plainDecimal(text: string): string {
  const match = /^\+?(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i.exec(text);
  const [, whole = '', fraction = '', power = '0'] = match ?? [];
  const exponent = Number(power);
  if (whole + fraction === '' || Math.abs(exponent) > maxExponent) return text;
  const digits = '0'.repeat(Math.max(0, -exponent)) + whole + fraction + '0'.repeat(Math.max(0, exponent));
  const point = Math.max(0, -exponent) + whole.length + exponent;
  const before = digits.slice(0, point).replace(/^0+(?=\d)/, '');
  const after = digits.slice(point).replace(/0+$/, '');
  return `${before === '' ? '0' : before}${after === '' ? '' : `.${after}`}`;
}

/** Nano-USD as a JSON number of USD. Exact up to `maxNanos`: no other amount of nine decimals has the same nearest number. */
export function usdNumber(nanos: number): number {
  return nanos / nanosPerUsd;
}

/** The decimals that an amount is written with at least. */
const leastDecimals = 2;
const zero = 0x30;

/** Writes nano-USD as a decimal string of USD, with two to nine decimals: `5.00`, `-0.000000001`. */
export function formatUsd(nanos: number | bigint): string {
  const digits = String(nanos < 0 ? -nanos : nanos).padStart(decimals + 1, '0');
  const point = digits.length - decimals;
  let end = digits.length;
  while (end > point + leastDecimals && digits.charCodeAt(end - 1) === zero) end--;
  return `${nanos < 0 ? '-' : ''}${digits.slice(0, point)}.${digits.slice(point, end)}`;
}

/** Writes nano-USD with all nine decimals, so that every amount of a column has the same form: `-0.000120000`. */
export function exactUsd(nanos: number): string {
  const digits = String(Math.abs(nanos)).padStart(decimals + 1, '0');
  return `${nanos < 0 ? '-' : ''}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** Reads what `exactUsd` writes into nano-USD; `null` for anything else. */
export function parseExactUsd(text: string): bigint | null {
  return /^-?\d+\.\d{9}$/.test(text) ? BigInt(text.replace('.', '')) : null;
}
