/** A text that is searched, or why it is not. */
interface Searched {
  readonly text: string;
  readonly fault: string | null;
}

/**
 * What is searched becomes part of the address, where no secret may be: of a text with a key's secret, the id that it names is
 * searched, and one with another secret is not searched.
 */
export function searchedText(given: string): Searched {
  const text = given.trim();
  const [, id] = /sk-tg-([A-Za-z0-9]{12})-/.exec(text) ?? [];
  if (id !== undefined) return { text: `key_${id}`, fault: null };
  if (!/\bsk-\S{8}/.test(text)) return { text, fault: null };
  return { text: '', fault: 'This looks like a secret, and was not searched. Search for a name or an id.' };
}
