import { environmentKeyName as environmentKey } from '../domain/keys/declared-key.ts';
import { schemaMessage } from '../shared/schema-messages.ts';
import { declaredSecret } from './declared-keys.ts';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import { isReference, unreplaced } from './file/environment-references.ts';
import { readSecretFile } from './secret-file.ts';

/** An unchecked config with the key of the environment, and what is wrong with that key. */
interface WithEnvironmentKey {
  readonly input: unknown;
  /** Each with the variable's name, rather than a path that the operator has not written. */
  readonly problems: readonly string[];
}

/**
 * Adds the key of `TEXTGATE_KEY`, or of the file in `TEXTGATE_KEY_FILE`, to those that an unchecked config declares. No
 * problem quotes it.
 */
export function withEnvironmentKey(input: unknown, environment: Environment): WithEnvironmentKey {
  const text = readVariable(environment, 'TEXTGATE_KEY');
  const file = readVariable(environment, 'TEXTGATE_KEY_FILE');
  const refuse = (variable: string, problem: string): WithEnvironmentKey => ({
    input,
    problems: [`${variable}: ${problem}`],
  });
  if (text !== undefined && file !== undefined)
    return refuse('TEXTGATE_KEY', 'TEXTGATE_KEY_FILE is set, too: set one of them');
  if (text !== undefined) return declare(input, text, (problem) => refuse('TEXTGATE_KEY', problem));
  if (file === undefined) return { input, problems: [] };
  const inFile = (problem: string): WithEnvironmentKey => refuse('TEXTGATE_KEY_FILE', problem);
  try {
    return declare(input, readSecretFile(file), inFile);
  } catch (error) {
    return inFile(error instanceof Error ? error.message : String(error));
  }
}

/** The variable from which the declared key at a path comes that is not in the file; `null` for any other path. */
export function sourceOfKey(
  [section, name, key]: readonly PropertyKey[],
  environment: Environment,
): string | null {
  if (section !== 'keys' || name !== environmentKey || key !== 'key') return null;
  return readVariable(environment, 'TEXTGATE_KEY') === undefined ? 'TEXTGATE_KEY_FILE' : 'TEXTGATE_KEY';
}

function declare(
  input: unknown,
  text: string,
  refuse: (problem: string) => WithEnvironmentKey,
): WithEnvironmentKey {
  // Its hash would be stored, and the name of the variable would be a key that can be guessed.
  if (isReference(text)) return refuse(unreplaced);
  const read = declaredSecret.safeParse(text, { error: schemaMessage });
  if (!read.success) return refuse(read.error.issues.map(({ message }) => message).join('; '));
  const declared = isObject(input) ? (input['keys'] ?? {}) : null;
  // What is no object is reported by the check of the config.
  if (!isObject(declared)) return { input, problems: [] };
  if (Object.hasOwn(declared, environmentKey))
    return refuse(`keys.${environmentKey} in the config has the name of this key: rename that one`);
  const keys = { ...declared, [environmentKey]: { key: read.data } };
  return { input: { ...(input as object), keys }, problems: [] };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
