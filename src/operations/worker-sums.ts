/** The sum of what each worker has. */
export function sum(all: readonly number[]): number {
  return all.reduce((total, each) => total + each, 0);
}

/** `null` if one worker has no limit: then they have none together. */
export function sumOfLimits(all: readonly (number | null)[]): number | null {
  const known = all.filter((each) => each !== null);
  return known.length < all.length ? null : sum(known);
}
