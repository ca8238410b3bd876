/** The largest distance between a misspelt name and a suggestion, in single-character edits. */
const maxEdits = 3;

/** The known name closest to a misspelt one; `null` when none is close. */
export function nearestName(wrong: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let bestEdits = Math.min(maxEdits, Math.ceil(wrong.length / 2)) + 1;
  for (const name of known) {
    // Spares the comparison with most names: names of such different lengths can't be closer.
    if (Math.abs(wrong.length - name.length) >= bestEdits) continue;
    const edits = editDistance(wrong.toLowerCase(), name.toLowerCase());
    if (edits < bestEdits) [best, bestEdits] = [name, edits];
  }
  return best;
}

/** The Levenshtein distance, computed with one row of memory. */
function editDistance(left: string, right: string): number {
  const row = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let i = 1; i <= left.length; i++) {
    let diagonal = i - 1;
    row[0] = i;
    for (let j = 1; j <= right.length; j++) {
      const above = row[j] ?? 0;
      const substituted = diagonal + (left[i - 1] === right[j - 1] ? 0 : 1);
      row[j] = Math.min(above + 1, (row[j - 1] ?? 0) + 1, substituted);
      diagonal = above;
    }
  }
  return row[right.length] ?? 0;
}
