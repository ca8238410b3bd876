/** Parses JSON; `undefined`, which no JSON text can mean, for what is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
