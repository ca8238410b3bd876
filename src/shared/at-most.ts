/** Bounds an LRU cache to a number of entries. Its own `max` takes the memory of all of them at once, when it is made. */
export function atMost(entries: number): {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
} {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
