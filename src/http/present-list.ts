/** A page of a list as JSON, with the cursor of the next page; `null` after the last one. */
export function presentList(data: readonly object[], next: string | null): object {
  return { object: 'list', data, next };
}
