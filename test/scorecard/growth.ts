/** How much a measure grows from the first to the last of these samples, by the line that fits them best (least squares). */
export function growthOf(samples: readonly number[]): number {
  const count = samples.length;
  const meanAt = (count - 1) / 2;
  const mean = samples.reduce((sum, value) => sum + value, 0) / count;
  const products = samples.reduce((sum, value, at) => sum + (at - meanAt) * (value - mean), 0);
  const squares = samples.reduce((sum, _, at) => sum + (at - meanAt) ** 2, 0);
  return squares === 0 ? 0 : (products / squares) * (count - 1);
}
