import { isAlias, isMap, isScalar, isSeq } from 'yaml';
import type { Node, Pair } from 'yaml';
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
  const lineOf = (node: Node): number => lineCounter.linePos(node.range?.[0] ?? 0).line;
  const anchors = new Map<string, Value | null>();
  /** The value of a node; `null` for an empty one. An alias finds the anchors before it, and not the one that it is in. */
  const read = (node: Node): Value | null => {
    if (isAlias(node)) {
      const known = anchors.get(node.source);
      return known === undefined ? refuse(node, unknownAlias) : known;
    }
    const value = readNew(node);
    const { anchor } = node as { readonly anchor?: string };
    if (anchor !== undefined) anchors.set(anchor, value);
    return value;
  };
  const readNew = (node: Node): Value | null => {
    const line = lineOf(node);
    if (isSeq(node))
      return { kind: 'list', line, items: node.items.flatMap((item) => read(item as Node) ?? []) };
    if (isMap(node)) return { kind: 'settings', line, settings: readSettings(node.items) };
    if (!isScalar(node)) return null;
    const written = node.value as string;
    return node.type === 'PLAIN' && nothing.test(written) ? null : { kind: 'text', line, text: written };
  };
  const readSettings = (pairs: readonly Pair[]): Settings => {
    const own = new Map<string, Value>();
    const merged: Settings[] = [];
    for (const pair of pairs) {
      const { key, value: node } = pair as Pair<Node, Node | null>;
      const value = node === null ? null : read(node);
      if (isMergeKey(key))
        for (const source of value?.kind === 'list' ? value.items : [value])
          merged.push(source?.kind === 'settings' ? source.settings : refuse(key, mergedOthers));
      else if (isScalar(key) && value !== null)
        own.set(String(key.value), Object.assign({}, value, { line: lineOf(key) }));
    }
    // What is written has precedence over what is merged, and that over what is merged later.
    return new Map([...merged.toReversed().flatMap((settings) => Array.from(settings)), ...own]);
  };
  const value = document.contents === null ? null : read(document.contents);
  if (value === null) throw new ConfigError(file, ['line 1: the file is empty']);
  return value;
}

const mergedOthers = '<< merges settings: expected an alias (*name) of some, or a list of such';

function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.source === '<<' && key.type === 'PLAIN';
}
