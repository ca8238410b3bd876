/** Milliseconds since 1970 of a moment as HTTP and RFC 3339 write it; `null` if the text is none. */
export function parseMoment(text: string): number | null {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}
