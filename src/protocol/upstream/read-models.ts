import { isPlainObject, parseJson } from '../../shared/parse-json.ts';

/** A model as an upstream lists it. */
export interface ListedModel {
  /** Its name there. */
  readonly name: string;
  /** Seconds since 1970; `null` when the list does not say. */
  readonly createdAtSeconds: number | null;
}

/** What Google's names begin with in lists, though not in requests. */
const googlePrefix = 'models/';

/**
 * Reads `{"data":[{"id","created"}]}`, which most have, or Google's `{"models":[{"name"}]}`; `null` for anything else.
 * Entries without a usable name are left out.
 */
export function readModels(text: string): readonly ListedModel[] | null {
  const list = parseJson(text);
  if (!isPlainObject(list)) return null;
  const entries = list['data'] ?? list['models'];
  if (!Array.isArray(entries)) return null;
  return entries.filter(isPlainObject).flatMap(({ id, name, created }) => {
    const found = id ?? (typeof name === 'string' ? name.replace(googlePrefix, '') : null);
    if (typeof found !== 'string' || found === '') return [];
    return [{ name: found, createdAtSeconds: Number.isSafeInteger(created) ? (created as number) : null }];
  });
}
