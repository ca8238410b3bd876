import { maxEventChars } from '../../protocol/sse.ts';

/** How wide the time before a frame is, with its unit, in characters. */
const timeChars = 10;

/** Takes a stream apart at its empty lines; comments are frames, too. */
export class FrameSplitter {
  #rest = '';

  /** Takes the next piece; returns the frames that it completed, without the empty line behind each. */
  push(text: string): readonly string[] {
    const frames = (this.#rest + text).split(/\r?\n\r?\n/);
    this.#rest = frames.pop() ?? '';
    if (this.#rest.length > maxEventChars)
      throw new Error(`a frame has more than ${maxEventChars} characters`);
    return frames;
  }

  /** What has come behind the last empty line. */
  end(): readonly string[] {
    return this.#rest === '' ? [] : [this.#rest];
  }
}

/** A frame with its time, in milliseconds; its further lines stand below the first one. */
export function writeFrame(frame: string, atMs: number): string {
  const [first = '', ...more] = frame.split(/\r?\n/);
  const time = `${Math.round(atMs)} ms`.padStart(timeChars);
  return [`${time}  ${first}`, ...more.map((line) => ' '.repeat(timeChars + 2) + line)].join('\n');
}
