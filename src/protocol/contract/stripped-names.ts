/** How many names of unlisted fields are kept for one request; further ones become `other`. */
const maxUnlisted = 32;

/** Unlisted names that may appear in a header. Any other client-chosen name becomes `other`. */
const ordinaryName = /^[\w.-]{1,64}$/;

const other = 'other';

/**
 * The names of the fields that were stripped from one request, each once, in document order. Fields of list entries
 * have one name for the whole list, such as `messages[].name`, so a long history adds no more names than a short one.
 */
export class StrippedNames {
  /** Made for the first name: most requests have none. */
  #names: Set<string> | null = null;
  #unlisted = 0;

  /** Adds the name of a field in the registry. */
  add(name: string): void {
    (this.#names ??= new Set()).add(name);
  }

  /** Adds a name that the client made up. Their number is bounded: they stand in a header and in the log. */
  addUnlisted(prefix: string, name: string): void {
    const full = prefix + (ordinaryName.test(name) ? name : other);
    if (this.#names?.has(full) === true) return;
    const isKept = this.#unlisted++ < maxUnlisted;
    this.add(isKept ? full : other);
  }

  list(): readonly string[] {
    return this.#names === null ? [] : [...this.#names];
  }
}
