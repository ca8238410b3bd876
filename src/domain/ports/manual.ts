/** A page or a file of the documentation, as a browser gets it. */
export interface ManualFile {
  /** Its media type. */
  readonly type: string;
  readonly body: string | Uint8Array;
}

/** The documentation, as it lies beside the program. */
export interface Manual {
  /** Finds a page by its path without `.md`, or a file by its path; the index has the empty path. */
  find(path: string): Promise<ManualFile | null>;
  /** A page with the sections that have all words of a text. */
  search(text: string): Promise<ManualFile>;
  /** Where the text of a page that had this path is now: a path below the documentation, with an anchor; else `null`. */
  movedTo(path: string): string | null;
}
