/** A replica's cache of prefixes: the tokens of conversations and of instructions, of which the least recently used go first. */
export class PrefixCache {
  readonly #size: number;
  /** Tokens by name, least recently used first. */
  readonly #entries = new Map<string, number>();
  #tokens = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** How many tokens of a conversation it has: none without those of the instructions, with which each prompt begins. */
  holds(conversation: string, application: number, instructionTokens: number): number {
    if (!this.#entries.has(nameOf(application))) return 0;
    return instructionTokens + (this.#entries.get(conversation) ?? 0);
  }

  /** The same, and keeps what was read longer. */
  read(conversation: string, application: number, instructionTokens: number): number {
    const found = this.holds(conversation, application, instructionTokens);
    for (const name of [conversation, nameOf(application)]) {
      const tokens = this.#entries.get(name);
      if (tokens !== undefined) this.#put(name, tokens);
    }
    return found;
  }

  /** Keeps a conversation of so many tokens beside those of its instructions. */
  write(conversation: string, tokens: number, application: number, instructionTokens: number): void {
    this.#put(conversation, tokens);
    this.#put(nameOf(application), instructionTokens);
    for (const [name, unused] of this.#entries) {
      if (this.#tokens <= this.#size) break;
      this.#entries.delete(name);
      this.#tokens -= unused;
    }
  }

  #put(name: string, tokens: number): void {
    this.#tokens += tokens - (this.#entries.get(name) ?? 0);
    this.#entries.delete(name);
    this.#entries.set(name, tokens);
  }
}

function nameOf(application: number): string {
  return `instructions ${application}`;
}
