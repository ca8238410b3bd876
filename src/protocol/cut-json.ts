/** Where the engine found a fault, if it says so. */
const place = / at position (\d+)/;

/** Whether a text is an object or a list in JSON up to its end, and would only have to go on. */
export function isCutJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    const { message } = error as SyntaxError;
    return message.startsWith('Unexpected end') || place.exec(message)?.[1] === String(text.length);
  }
}
