import { existsSync, readFileSync } from 'node:fs';

/** The shortest text that is searched for, in characters: shorter ones may occur by chance. */
const minLength = 12;

/** Secrets, prompts and answers of this test file, which must not appear in logs, metrics or the database. */
const planted = new Set<string>();

/** Adds a text to search for in everything that a gateway writes. */
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

/** Throws if a planted text is found in one of the places. */
export function findCanaries(places: Readonly<Record<string, string | Buffer>>): void {
  for (const [place, found] of Object.entries(places))
    for (const canary of planted)
      if (found.includes(canary)) throw new Error(`${place} contains a planted text: ${canary.slice(0, 40)}`);
}

/** All bytes of a database file and its log. A buffer, because a large database exceeds the longest string. */
export function readDatabaseFiles(file: string): Buffer {
  return Buffer.concat(
    [file, `${file}-wal`].filter((name) => existsSync(name)).map((name) => readFileSync(name)),
  );
}
