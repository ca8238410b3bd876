/** One part of a stream of server-sent events. */
export interface StreamPart {
  /** `unfinished`: the stream ended within it. */
  readonly type: 'event' | 'comment' | 'unfinished';
  /** The name of an event that has one. */
  readonly name: string | null;
  /** The data of an event, or the text of a comment. */
  readonly text: string;
}

/** What reads a stream of server-sent events from bytes that may be split anywhere. */
export interface EventStream {
  /** Returns the parts that these bytes complete. */
  read(bytes: Uint8Array): readonly StreamPart[];
  /** Returns what is left at the end of the stream. */
  end(): readonly StreamPart[];
}

/** Begins to read a stream. Lines end in CR, LF or both, as the rules of server-sent events have it. */
export function openEventStream(): EventStream {
  const decoder = new TextDecoder();
  const lineEnd = /\r\n?|\n/g;
  let rest = '';
  let skipsLineFeed = false;
  let event = emptyEvent();
  const readText = (text: string): readonly StreamPart[] => {
    if (text === '') return [];
    const parts: StreamPart[] = [];
    // A CR ends its line at once, so the LF of a pair may come with the next bytes.
    const more = skipsLineFeed && text.startsWith('\n') ? text.slice(1) : text;
    skipsLineFeed = text.endsWith('\r');
    const all = rest + more;
    let start = 0;
    lineEnd.lastIndex = rest.length;
    for (let match = lineEnd.exec(all); match !== null; match = lineEnd.exec(all)) {
      const part = readLine(all.slice(start, match.index), event);
      if (part !== null) parts.push(part);
      if (part?.type === 'event' || match.index === start) event = emptyEvent();
      start = lineEnd.lastIndex;
    }
    rest = all.slice(start);
    return parts;
  };
  return {
    read: (bytes) => readText(decoder.decode(bytes, { stream: true })),
    end() {
      const parts = readText(decoder.decode());
      const left = [...event.lines, ...(rest === '' ? [] : [rest])].join('\n');
      return left === '' ? parts : [...parts, { type: 'unfinished', name: event.name, text: left }];
    },
  };
}

/** Reads the parts of an answer as they come, and at its end what is left, also where its connection broke off. */
export async function* readParts({ body }: Response): AsyncGenerator<readonly StreamPart[]> {
  const stream = openEventStream();
  const reader = body?.getReader();
  try {
    for (let piece = await reader?.read(); piece?.value !== undefined; piece = await reader?.read())
      yield stream.read(piece.value);
  } catch (error) {
    yield stream.end();
    throw error;
  }
  yield stream.end();
}

interface OpenEvent {
  name: string | null;
  readonly lines: string[];
}

function emptyEvent(): OpenEvent {
  return { name: null, lines: [] };
}

/** Reads a line: a comment is a part, an empty line completes an event, and a field is added to the event. */
function readLine(line: string, event: OpenEvent): StreamPart | null {
  if (line === '')
    return event.lines.length === 0
      ? null
      : { type: 'event', name: event.name, text: event.lines.join('\n') };
  const colon = line.indexOf(':');
  const field = colon === -1 ? line : line.slice(0, colon);
  const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (colon === 0) return { type: 'comment', name: null, text: value };
  if (field === 'data') event.lines.push(value);
  if (field === 'event') event.name = value === '' ? null : value;
  return null;
}
