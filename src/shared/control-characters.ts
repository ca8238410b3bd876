/** Control and format characters (escape sequences, direction marks) and line separators: what changes how a line is shown. */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const everyInvisible = new RegExp(invisible.source, 'gu');

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['\n', String.raw`\n`],
  ['\r', String.raw`\r`],
  ['\t', String.raw`\t`],
]);

/** Whether a text has characters that a terminal obeys rather than shows. */
export function hasControlCharacters(text: string): boolean {
  return invisible.test(text);
}

/** The text as it can be shown anywhere: such characters become escapes like `\u{1b}`. */
export function escapeControlCharacters(text: string): string {
  return text.replace(
    everyInvisible,
    (character) => shortEscapes.get(character) ?? `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
