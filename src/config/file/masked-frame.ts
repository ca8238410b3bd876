/** How many characters of a line are shown around the fault: as many as fit on a terminal beside the line number. */
const maxShown = 80;

/** A reference, or the characters between those of YAML's structure. */
const words = /\$\{[A-Z_][A-Z0-9_]*\}|[^\s{}[\],:"'#]+/g;

/**
 * A line of a config file with a caret under the fault, for a log that must not hold secrets: only the structure, config
 * keys and references are shown, and every other character as a dot. A broken line can't be read, so nothing tells which
 * part of it is a key. Begins with a line feed; empty for a blank line.
 */
export function maskedFrame(
  text: string,
  { line, column }: { readonly line: number; readonly column: number },
  keys: ReadonlySet<string>,
): string {
  const source = text.split(/\r?\n/)[line - 1] ?? '';
  if (source.trim() === '') return '';
  const from = source.length <= maxShown ? 0 : Math.max(0, column - 1 - maxShown / 2);
  const head = `${line} | `;
  const shown = maskLine(source.replaceAll('\t', ' '), keys).slice(from, from + maxShown);
  return `\n${head}${shown.trimEnd()}\n${' '.repeat(head.length + column - 1 - from)}^`;
}

/** Replaces all words of a line but known ones by as many dots. */
function maskLine(line: string, keys: ReadonlySet<string>): string {
  return line.replaceAll(words, (word) => (isShown(word, keys) ? word : '·'.repeat(word.length)));
}

function isShown(word: string, keys: ReadonlySet<string>): boolean {
  return word === '-' || word.startsWith('${') || keys.has(word);
}
