import { createInterface } from 'node:readline/promises';
import { escapeControlCharacters } from '../../shared/control-characters.ts';
import type { FoundUpstream } from './known-upstreams.ts';

/** Asks a person one question; rejects when there is no answer, because Ctrl-C or the end of the input ended it. */
export type Ask = (question: string) => Promise<string>;

/** Questions on a terminal; `null` where there is none. */
export function askOnTerminal(): Ask | null {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY) return null;
  return async (question) => {
    const terminal = createInterface({ input, output });
    const ended = new AbortController();
    terminal.once('close', () => ended.abort());
    try {
      return (await terminal.question(question, { signal: ended.signal })).trim();
    } catch {
      throw new Error('cancelled: nothing was written');
    } finally {
      terminal.close();
    }
  };
}

/** Asks which of several upstreams are wanted. */
export async function askWhich<Found extends FoundUpstream>(
  found: readonly Found[],
  ask: Ask,
): Promise<readonly Found[]> {
  const lines = found.map(
    ({ name, foundBy }, index) => `  ${index + 1}  ${name} (${escapeControlCharacters(foundBy)})`,
  );
  const question = `Upstreams that were found:\n${lines.join('\n')}\nWhich of them? Numbers, separated by commas; Enter for all: `;
  for (;;) {
    const answer = await ask(question);
    if (answer === '') return found;
    const numbers = new Set(
      answer
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number),
    );
    const chosen = found.filter((_upstream, index) => numbers.has(index + 1));
    if (chosen.length === numbers.size) return chosen;
  }
}

/** Asks for an upstream that was not found: its URL, and the variable with its key, `undefined` for none. */
export async function askForUpstream(
  ask: Ask,
): Promise<{ readonly url: string; readonly variable: string | undefined }> {
  const url = await ask('The base URL of the upstream, version included, such as http://127.0.0.1:8000/v1: ');
  const variable = await ask('The environment variable with its API key; Enter for none: ');
  return { url, variable: variable === '' ? undefined : variable };
}
