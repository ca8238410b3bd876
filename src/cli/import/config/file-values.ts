import { isAlias, isMap, isPair, isScalar, isSeq } from 'yaml';
import type { LineCounter, Node, Pair } from 'yaml';
import { parseSyntax, unknownAlias } from '../../../config/file/yaml-file.ts';
import { ConfigError } from '../../../config/load.ts';

/** Settings by their names, without those that are empty. */
export type Settings = ReadonlyMap<string, Value>;

/** A value of a YAML file, with the line where it begins. A text is as it is written, so that no number loses a digit. */
export type Value =
  | { readonly kind: 'text'; readonly line: number; readonly text: string }
  | { readonly kind: 'list'; readonly line: number; readonly items: readonly Value[] }
  | { readonly kind: 'settings'; readonly line: number; readonly settings: Settings };

/** What stands for nothing where it is not quoted. */
const nothing = /^(?:|~|null)$/i;

/** Keys that are shown in a fault: no other word is, as it may be a part of a secret. */
const shownKeys = new Set(['model_list', 'model_name', 'litellm_params', 'model', 'api_key', 'api_base']);

/**
 * Reads a YAML file as Python's reader does: with anchors and merge keys. An alias is the value of its anchor itself and no
 * copy, so that a file can't grow by aliases of aliases. Throws `ConfigError` with the faults and their lines.
 */
export function readValues(file: string, text: string): Value {
  // A tag such as !!binary would make another value than a text.
  const options = { schema: 'failsafe', merge: true, resolveKnownTags: false } as const;
  const { document, lineCounter, place, faults } = parseSyntax(text, shownKeys, options);
  if (faults.length > 0) throw new ConfigError(file, faults);
  const refuse = (node: Node, message: string): never => {
    throw new ConfigError(file, [place(node.range?.[0] ?? 0, message)]);
  };
  const { contents } = document;
  const value = contents === null ? null : new Reader(lineCounter, refuse).read(contents);
  if (value === null) throw new ConfigError(file, ['line 1: the file is empty']);
  return value;
}

/** Reads nodes in their order, so that an alias finds the anchors before it, and not the one that it is in. */
class Reader {
  readonly #lines: LineCounter;
  readonly #refuse: (node: Node, message: string) => never;
  readonly #anchors = new Map<string, Value | null>();

  constructor(lines: LineCounter, refuse: (node: Node, message: string) => never) {
    this.#lines = lines;
    this.#refuse = refuse;
  }

  /** The value of a node; `null` for an empty one. */
  read(node: Node): Value | null {
    if (isAlias(node)) {
      const value = this.#anchors.get(node.source);
      return value === undefined ? this.#refuse(node, unknownAlias) : value;
    }
    const value = this.#readNew(node);
    const { anchor } = node as { readonly anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, value);
    return value;
  }

  #readNew(node: Node): Value | null {
    const line = this.#lineOf(node);
    if (isSeq(node)) {
      const items = node.items.flatMap((item) => this.read(item as Node) ?? []);
      return { kind: 'list', line, items };
    }
    if (isMap(node)) return { kind: 'settings', line, settings: this.#readSettings(node.items) };
    if (!isScalar(node)) return null;
    const text = node.value as string;
    return node.type === 'PLAIN' && nothing.test(text) ? null : { kind: 'text', line, text };
  }

  #readSettings(pairs: readonly unknown[]): Settings {
    const own = new Map<string, Value>();
    const merged: Settings[] = [];
    for (const pair of pairs) {
      if (!isPair(pair)) continue;
      const { key, value: node } = pair as Pair<Node, Node | null>;
      const value = node === null ? null : this.read(node);
      if (isMergeKey(key)) merged.push(...this.#mergedSettings(key, value));
      else if (isScalar(key) && value !== null)
        own.set(String(key.value), Object.assign({}, value, { line: this.#lineOf(key) }));
    }
    // What is written has precedence over what is merged, and that over what is merged later.
    return new Map([...merged.toReversed().flatMap((settings) => Array.from(settings)), ...own]);
  }

  #lineOf(node: Node): number {
    return this.#lines.linePos(node.range?.[0] ?? 0).line;
  }

  #mergedSettings(key: Node, value: Value | null): readonly Settings[] {
    const sources = value?.kind === 'list' ? value.items : [value];
    return sources.map((source) =>
      source?.kind === 'settings'
        ? source.settings
        : this.#refuse(key, '<< merges settings: expected an alias (*name) of some, or a list of such'),
    );
  }
}

function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN';
}
