/** What became of a setting: it is there with the same meaning, with another one, or not at all. */
export type Result = 'taken' | 'changed' | 'none';

/** What is said of settings, and of which models. */
export interface Note {
  readonly result: Result;
  readonly settings: ReadonlySet<string>;
  readonly text: string;
  readonly models: ReadonlySet<string>;
}

/** Collects what became of each setting. What is said of several settings or models is said once. */
export class Notes {
  readonly #notes = new Map<
    string,
    Note & { readonly settings: Set<string>; readonly models: Set<string> }
  >();

  /** Adds a note; `model` is the one that the setting is of. The text has no value of the file, as that may be a secret. */
  add(result: Result, setting: string, text: string, model?: string): void {
    const key = `${result} ${text}`;
    const note = this.#notes.get(key) ?? { result, settings: new Set(), text, models: new Set() };
    note.settings.add(setting);
    if (model !== undefined) note.models.add(model);
    this.#notes.set(key, note);
  }

  /** Adds a note of a setting that has another meaning here. */
  changed(setting: string, text: string, model?: string): void {
    this.add('changed', setting, text, model);
  }

  /** Adds a note of a setting that has no counterpart. */
  none(setting: string, text: string, model?: string): void {
    this.add('none', setting, text, model);
  }

  /** All notes of a result. */
  of(result: Result): readonly Note[] {
    return [...this.#notes.values()].filter((note) => note.result === result);
  }
}
