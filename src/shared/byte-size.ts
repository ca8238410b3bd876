const unitBytes = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 } as const;

/** Reads `512B`, `64KiB`, `1MiB` or `1GiB` into bytes; `null` for anything else. */
export function parseByteSize(text: string): number | null {
  const match = /^(\d+)\s*(B|KiB|MiB|GiB)$/.exec(text.trim());
  if (match === null) return null;
  return Number(match[1]) * unitBytes[match[2] as keyof typeof unitBytes];
}
