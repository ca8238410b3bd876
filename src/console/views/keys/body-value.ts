import { asIso, entriesOf } from './form-texts.ts';

const numbers = ['concurrency', 'requestsPerMinute', 'tokensPerMinute', 'tokensPerDay', 'weight'] as const;
const lists = ['models', 'tags', 'allowFrom'] as const;
const texts = ['name', 'queueWait', 'lowBalance', 'group'] as const;
const times = ['expiresAt'] as const;

/** The settings that have one field in the form. */
export const names = [...texts, ...numbers, ...lists, ...times];

/** A setting as a body has it, from its field; `null` for an empty one. */
export function bodyValue(name: (typeof names)[number], typed: string): unknown {
  const text = typed.trim();
  if (isOneOf(times, name)) return asIso(text);
  if (isOneOf(lists, name)) {
    const entries = entriesOf(text);
    return entries.length === 0 ? null : entries;
  }
  if (text === '') return null;
  // What is no number is sent as it was typed: the gateway refuses it in its own words.
  return isOneOf(numbers, name) && /^\d+$/.test(text) ? Number(text) : text;
}

function isOneOf(some: readonly string[], name: string): boolean {
  return some.includes(name);
}
