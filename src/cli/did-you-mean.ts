import { nearestName } from '../shared/nearest-name.ts';

/** The end of a sentence that says which of the known names a wrong one is nearest to; empty if none is near. */
export function didYouMean(wrong: string, known: readonly string[]): string {
  const nearest = nearestName(wrong, known);
  return nearest === null ? '' : `; did you mean ${nearest}?`;
}
