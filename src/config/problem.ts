/** Something wrong in a config: where it is, and how to mend it. The message never quotes a text: it may be a secret. */
export interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** A problem with the place it has in the config: `models.small.routes[0].model: missing`. */
export function writeProblem({ path, message }: Problem): string {
  return `${writePath(path)}: ${message}`;
}

/** A path as its author would write it: `models.small.routes[0].model`, or `config` for the whole config. */
export function writePath(path: readonly PropertyKey[]): string {
  const written = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${writeKey(String(part))}`));
  return path.length === 0 ? 'config' : written.join('').replace(/^\./, '');
}

/** A key that is refused for its `${` may be a key and its value without a blank between them: a secret. */
function writeKey(key: string): string {
  return key.includes('${') ? key.replace(/[:$].*$/s, '…') : key;
}
