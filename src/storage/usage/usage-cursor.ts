import type { UsageQuery } from '../../domain/ports/usage.ts';
import { digest } from '../../shared/digest.ts';
import type { GroupValues, OrderedGroups } from './usage-statements.ts';

/** How long a cursor may be, in characters: five names of the greatest length fit many times. */
const maxCharacters = 16_384;

/** How many digits of a hash say which query a cursor is of. */
const markLength = 12;

/** What tells the cursors of a query from those of another one, as of another key: behind those, rows would be missing. */
export function markOf({ fromMs, toMs, where }: UsageQuery, groups: OrderedGroups): string {
  return digest(JSON.stringify([groups, where, fromMs, toMs])).slice(0, markLength);
}

/** Writes the groups behind which the next page begins as an opaque text. */
export function writeUsageCursor(mark: string, values: GroupValues): string {
  return mark + Buffer.from(JSON.stringify(values)).toString('base64url');
}

/** Reads a cursor; `null` for a text that is none of a query with this mark and these groups. */
export function readUsageCursor(
  cursor: string,
  mark: string,
  { period, dimensions }: OrderedGroups,
): GroupValues | null {
  if (cursor.length > maxCharacters || !cursor.startsWith(mark)) return null;
  let values: unknown;
  try {
    values = JSON.parse(Buffer.from(cursor.slice(mark.length), 'base64url').toString());
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
