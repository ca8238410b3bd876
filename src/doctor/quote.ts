/** How much of a name of the upstream's is quoted, in characters. */
const maxQuotedChars = 40;

/** Quotes a name that an upstream chose, cut to a length; the output escapes control characters. */
export function quote(name: string): string {
  const characters = Array.from(name);
  const cut = characters.length > maxQuotedChars ? `${characters.slice(0, maxQuotedChars).join('')}…` : name;
  return `'${cut}'`;
}
