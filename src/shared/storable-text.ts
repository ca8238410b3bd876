/** Why the databases can't keep a text as it is; `null` if they can. PostgreSQL has no U+0000, and UTF-8 no surrogates. */
export function whyNotStorable(text: string): string | null {
  if (text.includes('\0')) return 'expected a text without the character U+0000';
  return text.isWellFormed() ? null : 'expected whole characters: this text has half of a surrogate pair';
}

/** An id as it is looked up. What can't be stored is replaced: the id is then as unknown as one that was never given. */
export function searchableId(id: string): string {
  return id.toWellFormed().replaceAll('\0', '\u{fffd}');
}
