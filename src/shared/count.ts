/** Writes a number with its noun, which is in the plural for all numbers but 1. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
