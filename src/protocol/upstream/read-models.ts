import { isPlainObject, parseJson } from '../../shared/parse-json.ts';
import { whyNotStorable } from '../../shared/storable-text.ts';

/** A model in an upstream's list. */
export interface ListedModel {
  /** The upstream's name for the model. */
  readonly name: string;
  /** Seconds since 1970; `null` if the list has no such field. */
  readonly createdAtSeconds: number | null;
}

/** The prefix of Google's model names in lists, which requests leave out. */
const googlePrefix = 'models/';

/**
 * Reads the usual `{"data":[{"id","created"}]}`, or Google's `{"models":[{"name"}]}`; `null` for anything else.
 * Entries without a usable name are left out.
 */
export function readModels(text: string): readonly ListedModel[] | null {
  const list = parseJson(text);
  if (!isPlainObject(list)) return null;
  const entries = list['data'] ?? list['models'];
  if (!Array.isArray(entries)) return null;
  return entries.filter(isPlainObject).flatMap(({ id, name, created }) => {
    const found = id ?? (typeof name === 'string' ? name.replace(googlePrefix, '') : null);
    if (typeof found !== 'string' || found === '' || whyNotStorable(found) !== null) return [];
    return [{ name: found, createdAtSeconds: Number.isSafeInteger(created) ? (created as number) : null }];
  });
}
