const decimals = 9;

/** An amount of the API in billionths of a dollar: a number in JavaScript would lose digits. */
export function nanosOf(usd: string): bigint {
  const [whole = '0', part = ''] = usd.replace('-', '').split('.', 2);
  const nanos = BigInt(whole + part.padEnd(decimals, '0').slice(0, decimals));
  return usd.startsWith('-') ? -nanos : nanos;
}
