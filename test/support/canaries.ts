import { existsSync, readFileSync } from 'node:fs';

/** Shorter texts are not looked for: they may stand anywhere by chance. In characters. */
const minLength = 12;

/** Secrets, prompts and answers of this test file, none of which may be found where it does not belong. */
const planted = new Set<string>();

/** Has a text looked for in everything that a gateway writes. */
export function plant(...texts: readonly unknown[]): void {
  for (const text of texts) if (typeof text === 'string' && text.length >= minLength) planted.add(text);
}

/** Forgets what the test file before has planted. */
export function forgetPlanted(): void {
  planted.clear();
}

/** Plants what users say in a request of either protocol; what is no such request says nothing. */
export function plantPrompts(body: unknown): void {
  const { messages, input, instructions } = (body ?? {}) as Record<string, unknown>;
  plant(input, instructions);
  for (const list of [messages, input])
    if (Array.isArray(list)) plant(...list.map((item: { content?: unknown } | null) => item?.content));
}

/** Throws if anything that was planted stands in one of the places. */
export function findCanaries(places: Readonly<Record<string, string | Buffer>>): void {
  for (const [place, found] of Object.entries(places))
    for (const canary of planted)
      if (found.includes(canary))
        throw new Error(`${place} holds what is nobody's business: ${canary.slice(0, 40)}`);
}

/** All bytes of a database file and of its log: a large database is longer than a string can be. */
export function readDatabaseFiles(file: string): Buffer {
  return Buffer.concat(
    [file, `${file}-wal`].filter((name) => existsSync(name)).map((name) => readFileSync(name)),
  );
}
