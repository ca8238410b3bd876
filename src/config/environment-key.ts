import { readFileSync } from 'node:fs';
import { schemaMessage } from '../shared/schema-messages.ts';
import { declaredSecret } from './declared-keys.ts';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';

/** The name of the key that the environment declares. */
const environmentKey = 'environment';

/** The key that an environment variable declares, or the file that one names; `null` without either. */
interface FoundKey {
  readonly variable: string;
  readonly text: string;
}

/**
 * Adds the key of `TEXTGATE_KEY`, or of the file in `TEXTGATE_KEY_FILE`, to those that an unchecked config declares.
 * Its problems name the variable rather than a path that the operator has not written.
 */
export function withEnvironmentKey(input: unknown, environment: Environment, problems: string[]): unknown {
  if (typeof input !== 'object' || input === null) return input;
  const found = findKey(environment, problems);
  if (found === null) return input;
  const read = declaredSecret.safeParse(found.text, { error: schemaMessage });
  for (const { message } of read.error?.issues ?? []) problems.push(`${found.variable}: ${message}`);
  const declared = (input as { readonly keys?: unknown }).keys ?? {};
  if (!read.success || typeof declared !== 'object') return input;
  if (declared !== null && Object.hasOwn(declared, environmentKey)) {
    problems.push(`keys.${environmentKey}: ${found.variable} declares a key of this name: rename this one`);
    return input;
  }
  return { ...input, keys: { ...declared, [environmentKey]: { key: read.data } } };
}

function findKey(environment: Environment, problems: string[]): FoundKey | null {
  const text = readVariable(environment, 'TEXTGATE_KEY');
  const file = readVariable(environment, 'TEXTGATE_KEY_FILE');
  if (text !== undefined && file !== undefined) {
    problems.push('TEXTGATE_KEY: TEXTGATE_KEY_FILE is set, too: set one of them');
    return null;
  }
  if (text !== undefined) return { variable: 'TEXTGATE_KEY', text };
  if (file === undefined) return null;
  try {
    return { variable: 'TEXTGATE_KEY_FILE', text: readFileSync(file, 'utf8') };
  } catch (error) {
    problems.push(`TEXTGATE_KEY_FILE: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}
