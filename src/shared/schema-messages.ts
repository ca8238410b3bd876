/** The parts of a schema issue that its message is made of. */
interface SchemaIssue {
  readonly code?: string | undefined;
  readonly expected?: unknown;
  readonly input?: unknown;
  readonly origin?: unknown;
  readonly minimum?: unknown;
  readonly maximum?: unknown;
  readonly values?: unknown;
  readonly format?: unknown;
}

const nouns: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/**
 * The message of a schema issue in plain words; `undefined` leaves it to the schema library. The input is not quoted: it
 * may be a secret.
 */
export function schemaMessage(issue: SchemaIssue): string | undefined {
  const { code, expected, input, origin, minimum, maximum, values, format } = issue;
  switch (code) {
    case 'invalid_type':
      if (input === undefined) return `missing: expected ${nounOf(expected)}`;
      // A number with a fraction is a number, too.
      if (expected === 'int' && kindOf(input) === 'number') return 'expected a whole number';
      return `expected ${nounOf(expected)}, not ${nounOf(kindOf(input))}`;
    case 'too_small':
      if (origin === 'string')
        return minimum === 1 ? 'expected something' : `expected ${String(minimum)} characters or more`;
      if (origin === 'array')
        return minimum === 1 ? 'expected at least one' : `expected a list of ${String(minimum)} or more`;
      return `expected ${String(minimum)} or more`;
    case 'too_big':
      if (origin === 'array') return `expected a list of ${String(maximum)} or less`;
      return `expected ${String(maximum)}${origin === 'string' ? ' characters' : ''} or less`;
    case 'invalid_value':
      return Array.isArray(values)
        ? `expected ${values.map((value) => JSON.stringify(value)).join(' or ')}`
        : undefined;
    case 'invalid_format':
      return format === 'datetime' ? 'expected a time such as 2030-01-01T00:00:00Z' : undefined;
    case undefined:
    default:
      return undefined;
  }
}

function nounOf(kind: unknown): string {
  return nouns[String(kind)] ?? String(kind);
}

function kindOf(input: unknown): string {
  if (input === null) return 'null';
  if (Number.isNaN(input)) return 'a text';
  return Array.isArray(input) ? 'array' : typeof input;
}
