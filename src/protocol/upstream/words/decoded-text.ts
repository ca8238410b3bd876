import { beginsEscape, readEscape } from './escapes.ts';
import type { Span } from './secret-shapes.ts';

/** A message, or what it says once its escapes are read. */
interface Layer {
  readonly text: string;
  /** The part of the message that a part of this text was written as. */
  readonly inMessage: (span: Span) => Span;
}

/** How often escapes are read: a text may be escaped as HTML, and that as JSON. */
const maxDecodings = 2;

/** The forms in which a message is searched: as it is, and with its escapes read, once and twice. */
export function layersOf(message: string): readonly Layer[] {
  return [{ text: message, inMessage: (span) => span }, ...decodedLayers(message, maxDecodings)];
}

function decodedLayers(text: string, decodings: number): readonly Layer[] {
  const { decoded, starts, ends } = decode(text);
  if (decodings === 0 || decoded === text) return [];
  const back = ({ start, end, mark }: Span): Span => ({
    start: starts[start] ?? 0,
    end: ends[end - 1] ?? text.length,
    mark,
  });
  const inner = decodedLayers(decoded, decodings - 1);
  return [
    { text: decoded, inMessage: back },
    ...inner.map(({ text: twice, inMessage }) => ({
      text: twice,
      inMessage: (span: Span) => back(inMessage(span)),
    })),
  ];
}

/** Reads the escapes of a text. `starts` and `ends` are where each unit of the result was written. */
function decode(text: string): {
  readonly decoded: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
} {
  let decoded = '';
  const starts: number[] = [];
  const ends: number[] = [];
  for (let at = 0; at < text.length;) {
    const { point, end } = beginsEscape(text.charCodeAt(at))
      ? readEscape(text, at)
      : { point: text.charCodeAt(at), end: at + 1 };
    const written = point === null ? '' : String.fromCodePoint(point);
    decoded += written;
    for (let unit = 0; unit < written.length; unit++) {
      starts.push(at);
      ends.push(end);
    }
    at = end;
  }
  return { decoded, starts, ends };
}
