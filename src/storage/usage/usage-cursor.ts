import type { GroupValues, OrderedGroups } from './usage-statements.ts';

/** How long a cursor may be, in characters: five names of the greatest length fit many times. */
const maxCharacters = 16_384;

/** Writes the groups behind which the next page begins as an opaque text. */
export function writeUsageCursor(values: GroupValues): string {
  return Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** Reads a cursor; `null` for a text that is none of a query with these groups. */
export function readUsageCursor(cursor: string, { period, dimensions }: OrderedGroups): GroupValues | null {
  if (cursor.length > maxCharacters) return null;
  let values: unknown;
  try {
    values = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return null;
  }
  const most = dimensions.length + (period === null ? 0 : 1);
  if (!Array.isArray(values) || values.length === 0 || values.length > most) return null;
  const isValid = values.every((value: unknown, at) =>
    at === 0 && period !== null
      ? Number.isSafeInteger(value)
      : typeof value === 'string' && !value.includes('\0'),
  );
  return isValid ? (values as GroupValues) : null;
}
