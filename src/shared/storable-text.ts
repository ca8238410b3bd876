/** Why the databases can't keep a text as it is; `null` if they can. PostgreSQL has no U+0000, and UTF-8 no surrogates. */
export function whyNotStorable(text: string): string | null {
  if (text.includes('\0')) return 'expected a text without the character U+0000';
  return text.isWellFormed() ? null : 'expected whole characters: this text has half of a surrogate pair';
}

/** An id that is looked up: what can't be stored is replaced, so that it is as unknown as any other id that was never given. */
export function searchableId(id: string): string {
  return id.toWellFormed().replaceAll('\0', '\u{fffd}');
}
