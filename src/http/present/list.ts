/** A page of a list as JSON. */
export interface PresentedList<Entry> {
  readonly object: 'list';
  readonly data: readonly Entry[];
  /** The cursor of the next page; `null` after the last one. */
  readonly next: string | null;
}

export function presentList<Entry extends object>(
  data: readonly Entry[],
  next: string | null,
): PresentedList<Entry> {
  return { object: 'list', data, next };
}
