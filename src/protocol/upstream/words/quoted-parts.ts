/** A part of a text, from one index to another. */
export type Part = readonly [number, number];

const closings = new Map([
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
  ['‘', '’'],
  ['«', '»'],
]);

/** The letters before a literal of Python, as in `b'text'`. */
const literalPrefix = /(?:^|[^\p{L}\p{N}])(?:[bru]|[br]{2})$/iu;

/** A quotation mark, or dots in place of what was left out. */
const borders = /["'`“”‘’«»]|\.{3,}|…/g;

/** The parts of a message in quotation marks, and where parts begin whose end is cut off. */
export function quotedParts(message: string): {
  readonly closed: readonly Part[];
  readonly open: readonly number[];
} {
  const closed: Part[] = [];
  const open = new Map<string, number>();
  for (let at = 0; at < message.length; at++) {
    const mark = message[at] ?? '';
    const start = open.get(mark);
    if (start !== undefined && !isWordAt(message, at + 1)) {
      closed.push([start, at]);
      open.delete(mark);
    } else if (start === undefined && closings.has(mark) && mayOpen(message, at))
      open.set(closings.get(mark) ?? mark, at + 1);
  }
  return { closed: [...closed, ...cutParts(message)], open: [...open.values()] };
}

/** The pieces of a quotation whose middle or end was left out: from a quotation mark to dots, or from dots to a mark. */
function cutParts(message: string): readonly Part[] {
  const parts: Part[] = [];
  let from = 0;
  let before = '';
  for (const { 0: border, index } of message.matchAll(borders)) {
    if (before !== '' && isCut(before) !== isCut(border)) parts.push([from, index]);
    from = index + border.length;
    before = border;
  }
  return parts;
}

function isCut(border: string): boolean {
  return border.startsWith('.') || border === '…';
}

function mayOpen(message: string, at: number): boolean {
  return !isWordAt(message, at - 1) || literalPrefix.test(message.slice(Math.max(0, at - 3), at));
}

/** Whether a letter or digit is at an index. */
export function isWordAt(message: string, at: number): boolean {
  return /[\p{L}\p{N}]/u.test(message[at] ?? '');
}

/** Where Pydantic says what it got instead of a valid value: a number or a constant is told, a text is the client's. */
const echo = /\binput_value=(?!(?:None|True|False|-?\d[\d.]*)(?:[,\]\s]|$))/g;
const behindEcho = ', input_type=';

/** The values of a request that a message of Pydantic quotes, with their middle left out. */
export function echoedValues(message: string): readonly Part[] {
  return Array.from(message.matchAll(echo), ({ 0: name, index }): Part => {
    const start = index + name.length;
    const end = message.indexOf(behindEcho, start);
    return [start, end === -1 ? message.length : end];
  });
}
