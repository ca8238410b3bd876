import { writeFreeName, writeKnownWord } from './quotable.ts';
import { TlsFileError } from './tls-files.ts';

/** Something wrong in a config: where it is, and how to mend it. The message never quotes a text: it may be a secret. */
export interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** A problem with the place it has in the config: `models.small.routes[0].model: missing`. */
export function writeProblem({ path, message }: Problem): string {
  return `${writePath(path)}: ${message}`;
}

/**
 * A path as its author would write it: `models.small.routes[0].model`, or `config` for the whole config. A part that may
 * be a secret is shortened to `…`: without a blank after its colon, for example, a value is a part of the key.
 */
export function writePath(path: readonly PropertyKey[]): string {
  const written = path.map((part, index) =>
    typeof part === 'number' ? `[${part}]` : `.${writePart(path, index)}`,
  );
  return path.length === 0 ? 'config' : written.join('').replace(/^\./, '');
}

/** The sections whose keys are names of the author's choice. */
const namingSections = new Set<unknown>(['upstreams', 'models', 'keys']);

/** Any other key is one of the schema, the name of a header, or a mistake. */
function writePart(path: readonly PropertyKey[], index: number): string {
  const part = String(path[index]);
  if (part === '') return '""';
  return index === 1 && namingSections.has(path[0]) ? writeFreeName(part) : writeKnownWord(part);
}

/** Reads what a setting at a path of the config names. Throws an error that names the setting at fault. */
export function readAt<Result>(path: readonly string[], read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw atSetting(path, error);
  }
}

/** The error of what a setting at a path names, with the setting at fault. */
export function atSetting(path: readonly string[], error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  const where = error instanceof TlsFileError ? [...path, error.setting] : path;
  return new Error(`${writePath(where)}: ${reason}`, { cause: error });
}
