import { createReadStream, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Every form in which a word of ASCII is searched for: as text of one or two bytes a character, in hexadecimal and in Base64. */
function formsOf(word: string): readonly Buffer[] {
  const bytes = Buffer.from(word);
  // Its place in a group of three bytes decides how it looks in Base64; at its edges, characters have bits of other text.
  const base64 = [0, 1, 2].map((at) => {
    const text = Buffer.concat([Buffer.alloc(at), bytes]).toString('base64');
    return text.slice(Math.ceil((at * 8) / 6), Math.floor(((at + bytes.length) * 8) / 6));
  });
  const hex = bytes.toString('hex');
  const texts = [word, hex, hex.toUpperCase(), ...base64];
  return [...texts.map((text) => Buffer.from(text)), Buffer.from(word, 'utf16le')];
}

/** The files in a folder that have one of the words in any form, each with its path in the folder. */
export async function filesWithWords(folder: string, words: readonly string[]): Promise<readonly string[]> {
  const forms = words.flatMap(formsOf);
  const found: string[] = [];
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && (await hasOneOf(path, forms))) found.push(path.slice(folder.length + 1));
  }
  return found;
}

/** Whether a file has one of some bytes, which may be parted by the edge of two chunks. */
async function hasOneOf(path: string, forms: readonly Buffer[]): Promise<boolean> {
  const longest = Math.max(...forms.map(({ length }) => length));
  let before = Buffer.alloc(0);
  for await (const chunk of createReadStream(path)) {
    const bytes = Buffer.concat([before, chunk as Buffer]);
    if (forms.some((form) => bytes.includes(form))) return true;
    before = bytes.subarray(Math.max(0, bytes.length - longest + 1));
  }
  return false;
}
