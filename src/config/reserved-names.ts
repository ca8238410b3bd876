import type { Problem } from './problem.ts';

/** The schema's library leaves this name out of an object with names of the author's choice, and reports nothing. */
const reserved = '__proto__';

/** The problems of names that the config may not give to anything. Reads the unchecked config. */
export function reservedNames(input: unknown): readonly Problem[] {
  const upstreams = Object.keys(objectAt(input, ['upstreams'])).map((name) => ['upstreams', name, 'headers']);
  return [['upstreams'], ['models'], ['keys'], ['groups'], ['webhooks'], ...upstreams]
    .filter((path) => Object.hasOwn(objectAt(input, path), reserved))
    .map((path) => ({ path: [...path, reserved], message: 'this name is reserved: choose another one' }));
}

/** The object at a path of an unchecked config; an empty one where there is none. */
function objectAt(input: unknown, path: readonly string[]): object {
  let here = input;
  for (const key of path) here = isObject(here) && Object.hasOwn(here, key) ? here[key] : null;
  return isObject(here) ? here : {};
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
