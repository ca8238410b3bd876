/** Control and format characters (escape sequences, direction marks) and line separators: they change how a line is displayed. */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** A text without any of them. */
export const visibleText = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;
const everyInvisible = new RegExp(invisible.source, 'gu');

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['\n', String.raw`\n`],
  ['\r', String.raw`\r`],
  ['\t', String.raw`\t`],
]);

/** Whether a text contains control characters, which a terminal executes instead of displaying them. */
export function hasControlCharacters(text: string): boolean {
  return invisible.test(text);
}

/** Replaces control characters by escapes such as `\u{1b}`, so that the text can be displayed anywhere. */
export function escapeControlCharacters(text: string): string {
  return text.replace(
    everyInvisible,
    (character) => shortEscapes.get(character) ?? `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
