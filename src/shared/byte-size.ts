const unitBytes = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 } as const;

/** Reads `512B`, `64KiB`, `1MiB` or `1GiB` into bytes; `null` for anything else, and for a size beyond exact numbers. */
export function parseByteSize(text: string): number | null {
  const match = /^(\d+)\s*(B|KiB|MiB|GiB)$/.exec(text.trim());
  if (match === null) return null;
  const bytes = Number(match[1]) * unitBytes[match[2] as keyof typeof unitBytes];
  return Number.isSafeInteger(bytes) ? bytes : null;
}

/** Writes bytes in the largest unit that needs no fraction: `1MiB`, `1536B`. */
export function formatByteSize(bytes: number): string {
  const units = Object.entries(unitBytes).toReversed();
  const [unit, size] = units.find(([, each]) => bytes % each === 0 && bytes >= each) ?? ['B', 1];
  return `${bytes / size}${unit}`;
}
