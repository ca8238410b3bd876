import { isPlainObject, parseJson } from '../../../shared/parse-json.ts';
import { Utf8Decoder } from '../../../shared/utf8-decoder.ts';
import { SseParser } from '../../sse.ts';
import type { SseEvent } from '../../sse.ts';
import type { AnswerPart } from '../../text.ts';
import type { Answer } from '../answer.ts';
import type { Dialect, FrameReader, UpstreamReader } from '../dialect.ts';
import { invalidAnswer } from '../failures.ts';
import type { FrameTemplate } from './frame-template.ts';
import { TemplateLearner } from './frame-template.ts';

/** Names of events that only show that the connection is alive, whatever their data is. */
const heartbeats = /^(?:ping|heartbeat|keep-?alive)$/i;

/** How most servers end an event. Streams with other line ends are read in full. */
const frameEnd = '\n\n';

/**
 * Reads a streamed answer. The complete path parses each event and lets its dialect read it. The fast path takes the text
 * out of frames whose form was learned from the complete one, which reads all others: so both give the same parts, for
 * the same bytes in the same pieces.
 */
export class StreamReader implements UpstreamReader {
  readonly isWhole = false;
  readonly answer: Answer;
  readonly #marksEnd: boolean;
  readonly #frames: FrameReader;
  readonly #decoder = new Utf8Decoder();
  readonly #parser = new SseParser();
  /** `null` while the fast path is off. */
  readonly #learner: TemplateLearner | null;

  /** `createTrial` makes answers for the trials of learned forms; without it the fast path is off. */
  constructor(dialect: Dialect, answer: Answer, createTrial: (() => Answer) | null) {
    this.answer = answer;
    this.#marksEnd = dialect.marksEnd;
    this.#frames = dialect.createFrameReader();
    this.#learner =
      createTrial === null
        ? null
        : new TemplateLearner((frame) => readInFull(frame, new StreamReader(dialect, createTrial(), null)));
  }

  push(bytes: Uint8Array): AnswerPart {
    if (this.answer.ending === null) {
      const text = this.#decoder.push(bytes);
      if (this.#learner === null) this.readText(text);
      else this.#readFrames(text, this.#learner);
    }
    return this.answer.take();
  }

  end(): AnswerPart {
    const { answer } = this;
    if (answer.ending === null) {
      this.readText(this.#decoder.end());
      this.#readEvents(this.#parser.end());
    }
    answer.conclude(this.#marksEnd ? 'missing' : 'none');
    return answer.take();
  }

  /** The complete path, for text cut anywhere. */
  readText(text: string): void {
    this.#readEvents(this.#parser.push(text));
  }

  /** Both paths in turn: frames of the learned form as long as there are any, then one frame in full. */
  #readFrames(text: string, learner: TemplateLearner): void {
    for (let at = 0; at < text.length;) {
      if (learner.template !== null && this.#parser.isBetweenEvents) {
        at = this.#copyFrames(text, at, learner.template, learner);
        if (at === text.length) return;
      }
      const found = text.indexOf(frameEnd, at);
      const end = found === -1 ? text.length : found + frameEnd.length;
      this.#readFrame(text.slice(at, end), learner);
      at = end;
    }
  }

  /** The fast path: takes frames of a form from `at` on, and returns where the first other one begins. */
  #copyFrames(text: string, at: number, template: FrameTemplate, learner: TemplateLearner): number {
    const { answer } = this;
    let next = at;
    while (answer.ending === null) {
      const said = template.read(text, next);
      if (said === null) break;
      next = template.end;
      learner.copies++;
      answer.nextFrame();
      this.#frames.takeText(said, answer);
    }
    return next;
  }

  /** Reads a frame, or a part of one, in full; a whole frame that only said one text is one to learn from. */
  #readFrame(frame: string, learner: TemplateLearner): void {
    const { answer } = this;
    const { isBetweenEvents: isStart } = this.#parser;
    const { pieces } = answer;
    this.readText(frame);
    const isWhole = isStart && this.#parser.isBetweenEvents;
    if (isWhole && answer.ending === null && answer.pieces === pieces + 1)
      learner.saw(frame, answer.lastPiece);
  }

  #readEvents(events: readonly SseEvent[]): void {
    const { answer } = this;
    for (const event of events) this.#readEvent(event);
    if (!this.#parser.overflowed) return;
    answer.violations.add('oversized_event');
    answer.fail(invalidAnswer('an event of over 1 MiB'));
  }

  #readEvent({ name, data }: SseEvent): void {
    const { answer } = this;
    const told = data.trim();
    if (told === '' || (told === 'null' && name !== 'error') || heartbeats.test(name)) return;
    if (told.startsWith('[DONE]')) return answer.conclude('given');
    if (answer.ending !== null) return noticeLate(answer);
    const frame = parseJson(data);
    answer.nextFrame();
    if (isPlainObject(frame)) return this.#frames.readEvent(frame, name, answer);
    if (name === 'error') return answer.failAsReported(null);
    answer.violations.add('bad_json');
    answer.fail(invalidAnswer('an event that is not a JSON object'));
  }
}

/** Reads a frame into the answer of a reader in the middle of a stream: some frames say less at its beginning. */
function readInFull(frame: string, reader: StreamReader): Answer {
  const { answer } = reader;
  answer.say('.');
  answer.take();
  reader.readText(frame);
  return answer;
}

/** Notes an event after the end. It is dropped, since it would be text after the end for the client. */
function noticeLate({ ending, violations }: Answer): void {
  if (ending === 'finished') violations.add('duplicate_terminal');
}
