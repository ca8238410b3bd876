import { plainDecimal } from './money.ts';

/** Reads `5%` or `0.05` into 0.05; `null` for anything else, and for a share that is not from 0 to 1. */
export function parseShare(text: string): number | null {
  const [, digits, sign] = /^(\d+(?:\.\d+)?|\.\d+|\d+(?:\.\d+)?e-\d{1,3})(%?)$/i.exec(text.trim()) ?? [];
  if (digits === undefined) return null;
  // A division by 100 would be inexact: 0.07 % is not 0.0007000000000000001.
  const share = Number(sign === '%' ? `${plainDecimal(digits)}e-2` : digits);
  return share <= 1 ? share : null;
}

/** Writes a share as the percentage from which the same one is read: `5%` for 0.05. One below 1e-30 stays a number. */
export function formatShare(share: number): string {
  const plain = plainDecimal(String(share));
  return plain.includes('e') ? plain : `${plainDecimal(`${plain}e2`)}%`;
}
