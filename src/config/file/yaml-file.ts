import { LineCounter, isAlias, isMap, isScalar, isSeq, parseDocument, visit } from 'yaml';
import type { Document, DocumentOptions, Node, ParseOptions, SchemaOptions, YAMLError } from 'yaml';
import { findExcess } from '../../protocol/json-depth.ts';

/** The most faults of one file that are reported: after a broken line, most of the others follow from it. */
const maxFaults = 10;

/** A parsed YAML file, or its faults, which quote no text of it: a line may hold a key, and faults go into the log. */
type YamlFile =
  | { readonly kind: 'parsed'; readonly value: unknown; readonly places: YamlPlaces }
  | { readonly kind: 'faults'; readonly faults: readonly string[] };

/** Where the values of a parsed file are in its text. */
export interface YamlPlaces {
  /** The place of a value, or of the nearest object or list around it that is in the file. */
  placeOf(path: readonly PropertyKey[]): { readonly line: number; readonly offset: number };
  /** Whether the file has a value at a path. */
  has(path: readonly PropertyKey[]): boolean;
  /** A number as it is written in the file; `null` for anything else. */
  sourceOf(path: readonly PropertyKey[]): string | null;
}

/** A file with one document, with the faults of its syntax. The `keys` are shown in those; all other words are hidden. */
export function parseSyntax(
  text: string,
  keys: ReadonlySet<string>,
  options: ParseOptions & DocumentOptions & SchemaOptions = {},
) {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: false, logLevel: 'error', lineCounter, ...options });
  const place = (offset: number, message: string): string => {
    const { line, col: column } = lineCounter.linePos(offset);
    return `line ${line}, column ${column}: ${message}${maskedFrame(text, { line, column }, keys)}`;
  };
  const faults = reportedFaults([...document.errors, ...document.warnings]).map((fault) => {
    const at = isReference(fault, text) ? fault.pos[0] - 1 : fault.pos[0];
    return place(at, describeFault(fault, text));
  });
  return { document, lineCounter, place, faults };
}

/** Parses a YAML file with one document. The `keys` are shown in faults; all other words are hidden. */
export function parseYaml(text: string, keys: ReadonlySet<string>): YamlFile {
  const { document, lineCounter, place, faults: found } = parseSyntax(text, keys);
  const faults = found.length > 0 ? found : faultyNodes(document).map(([at, message]) => place(at, message));
  if (faults.length > 0) return { kind: 'faults', faults };
  if (document.contents === null) return { kind: 'faults', faults: [emptyFile] };
  try {
    const value: unknown = document.toJS();
    // An alias inside its own anchor is an object that contains itself, which this refuses.
    const json = JSON.stringify(value);
    if (findExcess(Buffer.from(json)) === 'depth') return { kind: 'faults', faults: [tooDeep] };
    return { kind: 'parsed', value, places: placesIn(document, lineCounter) };
  } catch (error) {
    if (error instanceof RangeError) return { kind: 'faults', faults: [tooDeep] };
    return {
      kind: 'faults',
      faults: ['an alias (*name) is inside its own anchor (&name), or repeats too much text'],
    };
  }
}

const tooDeep = 'objects or lists are nested too deeply: no setting needs so many levels';

export const unknownAlias =
  'a value that begins with * is an alias, and no anchor (&name) before it has its name: put the value in quotes';

const mergeKey =
  '<< is the merge key of YAML 1.1, which is not read: write the settings out, or use an alias (*name) for a whole value';

/** Aliases of nothing and merge keys, which the library takes for keys like any other; each with its place. */
function faultyNodes(document: Document): readonly (readonly [number, string])[] {
  const faults: [number, string][] = [];
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document) === undefined) faults.push([alias.range?.[0] ?? 0, unknownAlias]);
    },
    Scalar(key, { source, type, range }) {
      if (key === 'key' && source === '<<' && type === 'PLAIN') faults.push([range?.[0] ?? 0, mergeKey]);
    },
  });
  return faults.slice(0, maxFaults);
}

const emptyFile = `the file is empty: a config needs upstreams and models, such as
upstreams: { local: { url: http://127.0.0.1:8000/v1 } }
models: { from: local }`;

/** The first fault, and with it all duplicate keys, which are mistakes of their own. */
function reportedFaults(faults: readonly YAMLError[]): readonly YAMLError[] {
  return faults.filter(({ code }, index) => index === 0 || code === 'DUPLICATE_KEY').slice(0, maxFaults);
}

const indentation =
  'wrong indentation: the keys of one object begin in the same column, and those of an object inside it further right';

/** What to write in place of usual mistakes, for which the library's words are short, or quote the file. */
const usualMistakes: Readonly<Partial<Record<YAMLError['code'], string>>> = {
  MULTIPLE_DOCS: 'the file has several documents, which --- separates: a config is one of them',
  TAG_RESOLVE_FAILED:
    'a value that begins with ! is a tag, and there are none: write ${NAME} for an environment variable, or put the value in quotes',
  BAD_SCALAR_START: "a value can't begin with this character: put it in quotes",
  TAB_AS_INDENT: 'tabs are not allowed as indentation: write blanks',
  BAD_DQ_ESCAPE:
    'a backslash in double quotes begins an escape sequence, and there is none like this: write two backslashes, or single quotes around the value',
  BAD_DIRECTIVE: 'a line that begins with % is a directive, and there are none: put a value in quotes',
  RESOURCE_EXHAUSTION: tooDeep,
  BAD_INDENT: indentation,
  DUPLICATE_KEY: 'the same key twice in one object: leave one of them out',
};

/** The library's own words for a fault, without its quotations of the file, or what to write instead of a usual mistake. */
function describeFault(fault: YAMLError, text: string): string {
  const { code, message, pos } = fault;
  if (isReference(fault, text)) {
    const [, name = 'NAME'] = /^\{\s*([A-Z_][A-Z0-9_]*)\b/.exec(text.slice(pos[0])) ?? [];
    return `a reference inside braces or brackets without quotes: put it in quotes, "\${${name}}"`;
  }
  // A value on the line before it was read as the first line of a key.
  const isSecondLine = code === 'BLOCK_AS_IMPLICIT_KEY' && !/^.*:/.test(text.slice(pos[0]));
  if (isSecondLine) return indentation;
  // The same code is used for brackets that are not closed, for which the library's words are better.
  const isFlow = code === 'BAD_INDENT' && message.startsWith('Flow ');
  return (
    (isFlow ? undefined : usualMistakes[code]) ?? `not valid YAML: ${message.replace(/(?<=\S): .*$/s, '')}`
  );
}

/** Whether a fault is at the brace of a `${`, which begins an object inside other braces. */
function isReference({ pos: [at] }: YAMLError, text: string): boolean {
  return text.startsWith('${', at - 1);
}

function placesIn(document: Document, lineCounter: LineCounter): YamlPlaces {
  const find = (path: readonly PropertyKey[]) => descend(document, path);
  return {
    placeOf(path) {
      const { offset } = find(path);
      return { line: lineCounter.linePos(offset).line, offset };
    },
    has: (path) => find(path).depth === path.length,
    sourceOf(path) {
      const { node, depth } = find(path);
      const value = resolved(document, node);
      return depth === path.length && isScalar(value) ? (value.source ?? null) : null;
    },
  };
}

/** How far a path leads into a file: the last node on it, how many keys deep it is, and where it begins. */
interface Descent {
  readonly node: Node | null;
  readonly depth: number;
  readonly offset: number;
}

function descend(document: Document, path: readonly PropertyKey[]): Descent {
  let here: Descent = { node: document.contents, depth: 0, offset: document.contents?.range?.[0] ?? 0 };
  for (const key of path) {
    const next = step(document, here, key);
    if (next === null) return here;
    here = next;
  }
  return here;
}

/** One key or index further: an object's entry begins at its key. */
function step(document: Document, { node, depth, offset }: Descent, key: PropertyKey): Descent | null {
  const inside = resolved(document, node);
  if (isSeq(inside)) {
    const item = inside.items[Number(key)] as Node | undefined;
    return item === undefined ? null : { node: item, depth: depth + 1, offset: item.range?.[0] ?? offset };
  }
  if (!isMap(inside)) return null;
  const pair = inside.items.find(({ key: name }) => isScalar(name) && String(name.value) === String(key));
  if (pair === undefined) return null;
  const begin = (pair.key as Node).range?.[0] ?? offset;
  return { node: pair.value as Node | null, depth: depth + 1, offset: begin };
}

/** The node itself, or that of the anchor to which an alias refers. */
function resolved(document: Document, node: Node | null): Node | null {
  return isAlias(node) ? (node.resolve(document) ?? null) : node;
}

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
