import type { HistoryPart } from './interval.ts';

/** What of a part is a text. */
type PartContents = Pick<HistoryPart, 'figures' | 'groups'>;

/** Writes what a part has as JSON; amounts as texts of digits. */
export function writePart({ figures, groups }: PartContents): string {
  return JSON.stringify({ figures, groups } satisfies PartContents, (_name, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

/** Reads what `writePart` wrote. */
export function readPart(text: string): PartContents {
  const { figures, groups } = JSON.parse(text) as PartContents;
  for (const { counts } of groups) counts.chargeNanos = readAmount(counts.chargeNanos);
  return { figures, groups };
}

function readAmount(written: unknown): bigint {
  return BigInt(String(written));
}
