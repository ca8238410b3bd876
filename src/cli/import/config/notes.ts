/** What became of a setting: it is there with the same meaning, with another one, or not at all. */
export type Result = 'taken' | 'changed' | 'none';

/** What is said of a setting, and of which models. */
export interface Note {
  readonly result: Result;
  readonly setting: string;
  readonly text: string;
  readonly models: ReadonlySet<string>;
}

/** Collects what became of each setting. What is said of several models is said once. */
export class Notes {
  readonly #notes = new Map<string, Note & { readonly models: Set<string> }>();

  /** Adds a note; `model` is the one that the setting is of. The text has no value of the file, as that may be a secret. */
  add(result: Result, setting: string, text: string, model?: string): void {
    const key = `${result} ${setting} ${text}`;
    const note = this.#notes.get(key) ?? { result, setting, text, models: new Set<string>() };
    if (model !== undefined) note.models.add(model);
    this.#notes.set(key, note);
  }

  all(): readonly Note[] {
    return [...this.#notes.values()];
  }
}
