/** The text of a part of a URL; `null` where its escapes are none. */
export function decodePart(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
