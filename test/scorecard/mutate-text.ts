/** The ways to spoil a config file: characters, keys and values. */
const ways: readonly ((text: string, random: () => number) => string)[] = [
  (text, random) => text.slice(0, Math.floor(random() * text.length)),
  (text, random) => without(text, Math.floor(random() * text.length), 1),
  (text, random) => without(text, Math.floor(random() * text.length), 1 + Math.floor(random() * 20)),
  (text, random) => insert(text, random, oneOf('{}[]:,"\'&*!|>%@`#\t\0\u0007\ufeff'.split(''), random)),
  (text, random) => insert(text, random, text.slice(0, Math.floor(random() * text.length))),
  (text, random) => replaceOne(text, /"[a-zA-Z]+":/g, () => '"surprise":', random),
  (text, random) => replaceOne(text, /"[a-zA-Z]+":/g, (name) => `"${name.slice(2)}`, random),
  (text, random) => replaceOne(text, /:("[^"]*"|\d+)/g, () => `:${oneOf(wrongValues, random)}`, random),
  (text, random) => replaceOne(text, /"http[^"]*"/g, () => oneOf(wrongAddresses, random), random),
  (text, random) =>
    `${text}\n${oneOf(['surprise: 1', '---', '- a', '}', 'a: [', '&a [*a]', 'admin: 1'], random)}`,
  (_text, random) =>
    oneOf(['', ' ', '\n', 'null', '[]', '7', '"text"', '{', '\0', '!!js/function x', 'a: *b'], random),
];

const wrongValues = [
  'null',
  '[]',
  '{}',
  '-1',
  '1e400',
  '""',
  '"-5s"',
  'true',
  '"${NOT_SET_ANYWHERE}"',
  '0.5',
  '"NaN"',
];
const wrongAddresses = [
  '"ftp://a"',
  '"http://"',
  '"not an address"',
  '"http://169.254.169.254/v1"',
  '7',
  '"http://a:99999"',
];

/** A text with one fault, or two: which of them, and where, is chance. The result may still be a good one. */
export function mutate(text: string, random: () => number): string {
  const once = oneOf(ways, random)(text, random);
  return random() < 0.7 ? once : oneOf(ways, random)(once, random);
}

function oneOf<T>(list: readonly T[], random: () => number): T {
  const found = list[Math.floor(random() * list.length)];
  if (found === undefined) throw new Error('the list is empty');
  return found;
}

function without(text: string, at: number, length: number): string {
  return text.slice(0, at) + text.slice(at + length);
}

function insert(text: string, random: () => number, what: string): string {
  const at = Math.floor(random() * text.length);
  return text.slice(0, at) + what + text.slice(at);
}

/** Replaces one of the places that match. */
function replaceOne(
  text: string,
  pattern: RegExp,
  by: (found: string) => string,
  random: () => number,
): string {
  const places = [...text.matchAll(pattern)];
  if (places.length === 0) return text;
  const { 0: found, index } = oneOf(places, random);
  return text.slice(0, index) + by(found) + text.slice(index + found.length);
}
