/** A page of a list as JSON, with the cursor of the next page; `null` after the last one. */
export function presentList<Entry extends object>(data: readonly Entry[], next: string | null) {
  return { object: 'list' as const, data, next };
}
