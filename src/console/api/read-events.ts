/** A server-sent event; `name` is empty if it has none. */
export interface SentEvent {
  readonly name: string;
  readonly data: string;
}

/**
 * Reads the events of an answer, as an event source can't for a `POST`. Takes what this gateway writes: lines that end with
 * a line feed. An event that was cut off is left out.
 */
export async function* readEvents(response: Response): AsyncGenerator<SentEvent> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + value).split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const event = readFrame(frame);
      if (event !== null) yield event;
    }
  }
}

/** Reads one event; `null` for a comment. */
function readFrame(frame: string): SentEvent | null {
  const values = (field: string): readonly string[] =>
    frame
      .split('\n')
      .filter((line) => line.startsWith(`${field}: `))
      .map((line) => line.slice(field.length + 2));
  const data = values('data');
  return data.length === 0 ? null : { name: values('event')[0] ?? '', data: data.join('\n') };
}
