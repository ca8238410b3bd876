import { referenceTo } from '../../init/known-upstreams.ts';

const wholeReference =
  /^(?:os\.environ\/([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?::?-[^${}]*)?\}|\$([A-Z_][A-Z0-9_]*))$/;

/**
 * The environment variable that a value is: `os.environ/NAME`, as LiteLLM has it, or `${NAME}`, which templates replace before;
 * `null` for a value itself. A default is left out: it may be a key.
 */
export function variableIn(text: string): string | null {
  const [, litellms, inBraces, bare] = wholeReference.exec(text.trim()) ?? [];
  return litellms ?? inBraces ?? bare ?? null;
}

/** A text as a config file has it: with references to variables, and each other `$` twice. */
export function withReferences(text: string): string {
  const variable = variableIn(text);
  if (variable !== null && !text.includes(':-')) return referenceTo(variable);
  return text.replaceAll(/\$\{[A-Za-z_]\w*(?::-[^${}]*)?\}|\$/g, (found) => (found === '$' ? '$$' : found));
}

/** The variables that a text of either program refers to. */
export function variablesIn(text: string): ReadonlySet<string> {
  // A `$$` is a `$` of the value.
  const references = text.replaceAll('$$', '').matchAll(/os\.environ\/([A-Za-z_]\w*)|\$\{?([A-Za-z_]\w*)/g);
  return new Set([...references].map(([, litellms, other]) => litellms ?? other ?? ''));
}

/**
 * Names variables for keys that stand in a file themselves: the wished name, or one with a number behind it, and the same for the
 * same key. `taken` has variables that the file refers to, whose values may be other keys.
 */
export function keyNames(taken: readonly string[]): NameKey {
  const others = new Set(taken);
  const names = new Map<string, string>();
  return (key, wished) => {
    const name = names.get(key) ?? firstFree(wished, '_', (one) => others.has(one));
    names.set(key, name);
    others.add(name);
    return name;
  };
}

/** Names the variable of a key, by the wished name if that is free. */
export type NameKey = (key: string, wished: string) => string;

/** A name that is free: the wished one, or that with the first free number from 2 on behind it. */
export function firstFree(wished: string, separator: string, isTaken: (name: string) => boolean): string {
  let name = wished;
  for (let number = 2; isTaken(name); number++) name = `${wished}${separator}${number}`;
  return name;
}

/** The name of a variable made of any text: letters, digits and underscores. */
export function variableNamed(text: string): string {
  const words = text
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '');
  return /^[A-Z]/.test(words) ? words : `UPSTREAM_${words}`;
}
