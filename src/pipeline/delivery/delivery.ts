import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { wholeJson, writeRefusal } from '../../protocol/answer-writer.ts';
import type { AnswerWriter, AnswerKind } from '../../protocol/answer-writer.ts';
import type { FinishedAnswer } from '../../protocol/text.ts';
import { statusOf } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { HeadFacts, AnswerHead, ClientConnection } from '../client-connection.ts';
import { refusalOfResult } from '../results.ts';
import type { Settled } from '../results.ts';

/**
 * - `reading`: the request has not been read yet, so any answer is an HTTP error;
 * - `waiting`: the writer is chosen, and nothing has been sent;
 * - `open`: a part of a stream was sent, so the status can't change any more;
 * - `passing`: the upstream's own head was sent;
 * - `ended`: the last byte was handed to the connection.
 */
type DeliveryState =
  | { readonly phase: 'reading' }
  | { readonly phase: 'waiting'; readonly writer: AnswerWriter }
  | { readonly phase: 'open'; readonly writer: AnswerWriter }
  | { readonly phase: 'passing'; readonly isWhole: boolean }
  | { readonly phase: 'ended' };

const reading: DeliveryState = { phase: 'reading' };
const ended: DeliveryState = { phase: 'ended' };

/** What a delivery uses beside its client. */
interface DeliveryTools {
  readonly clock: Clock;
  /** Raised when the request must stop: a write then no longer waits for a client that does not read. */
  readonly signal: AbortSignal;
  /** What the head of an answer says of its key and its request, from the current stage. */
  readonly headFacts: () => HeadFacts;
  /** Called when the first part of a stream is sent. */
  readonly onOpened: () => void;
  readonly onFault: ReportFault;
}

/**
 * One client's side of an exchange: every byte for that client is sent here. The law: at most one head; parts only
 * after a head and only once the request is recorded; one end, and nothing after it. A call that would break the law
 * throws.
 */
export class Delivery {
  readonly #client: ClientConnection;
  readonly #tools: DeliveryTools;
  #state: DeliveryState = reading;
  #isPermitted = false;
  #hasLeft = false;
  /** Set while the client has to read before it gets more. */
  #draining: Promise<void> | null = null;
  #lastSentMs: number;
  #firstTextSentMs: number | null = null;
  #sentStatus: number | null = null;
  #wasOpened = false;
  /** Stops the keep-alive comments, if there are any. */
  #stopKeepAlive: (() => void) | null = null;

  constructor(client: ClientConnection, tools: DeliveryTools) {
    this.#client = client;
    this.#tools = tools;
    this.#lastSentMs = tools.clock.monotonicMs();
  }

  /** Whether the client has disconnected. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Whether its end was sent, or it was cut off. */
  get hasEnded(): boolean {
    return this.#state.phase === 'ended';
  }

  /** Whether a part of a stream was sent. */
  get wasOpened(): boolean {
    return this.#wasOpened;
  }

  /** Whether the upstream's own head was sent. */
  get isPassing(): boolean {
    return this.#state.phase === 'passing';
  }

  /** When the first text of a stream was sent, on the monotonic clock; `null` if none was. */
  get firstTextSentMs(): number | null {
    return this.#firstTextSentMs;
  }

  /** The status of a head that was sent before the end; `null` if none was. */
  get sentStatus(): number | null {
    return this.#sentStatus;
  }

  /** Calls back when the client disconnects before the end, or at once if it already has. */
  onLeft(callback: () => void): void {
    this.#client.onGone(() => {
      this.#hasLeft = true;
      callback();
    });
  }

  /** Sets the answer's writer. From now on a silent stream gets keep-alive comments, once bytes may be sent. */
  begin(writer: AnswerWriter): void {
    this.#expect('reading');
    this.#state = { phase: 'waiting', writer };
    if (writer.keepAlive === '') return;
    const comment = (): void => this.#keepAlive(writer.keepAlive);
    this.#client.onHalfClosed(comment);
    this.#stopKeepAlive = watchSilence(this.#tools.clock, () => this.#lastSentMs, comment);
  }

  /** The request is recorded, so bytes may be sent. */
  permit(): void {
    this.#isPermitted = true;
  }

  /**
   * Sends text as one part of a stream, or keeps it for a whole answer. Returns whether the client keeps up; if it does
   * not, await `drained` before more is sent.
   */
  send(deltas: readonly string[]): boolean {
    if (this.#hasLeft) return true;
    const writer = this.#writer();
    let text = '';
    for (const delta of deltas) text += writer.delta(delta);
    if (text === '') return true;
    this.#openStream(writer);
    this.#write(text);
    this.#firstTextSentMs ??= this.#lastSentMs;
    return this.#draining === null;
  }

  /**
   * Resolves when the client has read what was sent, has disconnected, or the request must stop; `null` while it keeps up.
   */
  drained(): Promise<void> | null {
    return this.#draining;
  }

  /** Sends the head of a stream that ended without text, so that a failed settlement can't change its status. */
  open(): void {
    const writer = this.#writer();
    if (!this.#hasLeft && writer.isStream) this.#openStream(writer);
  }

  /** Stops the keep-alive comments, so that the summary of the client's side stays true until the end. */
  seal(): void {
    this.#stopKeepAlive?.();
  }

  /**
   * Sends the end of a finished answer with its charge, and when it ended, in seconds since 1970. This and the other ends resolve
   * when it is written, or can't be.
   */
  finish(finished: FinishedAnswer, chargeNanos: number | null, endedAtSeconds: number): Promise<void> {
    const writer = this.#writer();
    const last = writer.finish(finished, endedAtSeconds, chargeNanos);
    const { phase } = this.#end();
    if (phase === 'open') return this.#client.end(last);
    return this.#client.answer(this.#head(200, writer, chargeNanos, null), last);
  }

  /** Sends a failure: an HTTP error while the status is still open, or the protocol's own failure event after that. */
  fail(refusal: Refusal, chargeNanos: number | null): Promise<void> {
    if (this.#state.phase === 'passing') throw new Error('delivery law broken: a second head');
    const before = this.#end();
    if (before.phase !== 'open') {
      const head = this.#head(statusOf(refusal.code), wholeJson, chargeNanos, refusal);
      return this.#client.answer(head, writeRefusal(refusal));
    }
    const last = before.writer.fail(refusal, chargeNanos);
    return before.writer.tearDownOnFailure ? this.#client.tearDown(last) : this.#client.end(last);
  }

  /** Sends the end of a settled request: that of its answer, or its failure. */
  async conclude({ result, chargeNanos, endedAtSeconds }: Settled): Promise<void> {
    if (this.#hasLeft) return this.abandon();
    if (this.isPassing) return this.endPassing();
    if (result.kind === 'finished') return this.finish(result, chargeNanos, endedAtSeconds);
    const refusal = refusalOfResult(result);
    if (refusal !== null) return this.fail(refusal, chargeNanos);
  }

  /** Notes that the upstream's own head was sent, without a writer. */
  passHead(status: number): void {
    this.#expect('reading');
    if (!this.#isPermitted) throw new Error('delivery law broken: a head before the request is recorded');
    this.#state = { phase: 'passing', isWhole: false };
    this.#sentStatus = status;
  }

  /** Notes that the upstream's whole body was sent. */
  passWhole(): void {
    this.#expect('passing');
    this.#state = { phase: 'passing', isWhole: true };
  }

  /** Ends a passed-on answer. An incomplete one breaks the connection, so that it can't pass for complete. */
  endPassing(): Promise<void> {
    this.#expect('passing');
    const before = this.#end();
    return before.phase === 'passing' && before.isWhole ? this.#client.end('') : this.#client.tearDown('');
  }

  /** Ends without a byte, because the client has disconnected. */
  abandon(): void {
    this.#end();
  }

  /** Breaks the connection, because the end could not be written. */
  tearDown(): Promise<void> {
    if (this.#state.phase !== 'ended') this.#end();
    return this.#client.tearDown('');
  }

  #openStream(writer: AnswerWriter): void {
    if (this.#state.phase === 'open') return;
    if (!this.#isPermitted) throw new Error('delivery law broken: a part before the request is recorded');
    this.#client.open(this.#head(200, writer, null, null));
    this.#state = { phase: 'open', writer };
    this.#wasOpened = true;
    this.#sentStatus = 200;
    this.#tools.onOpened();
  }

  #write(text: string): void {
    const full = this.#client.send(text, this.#tools.signal);
    this.#lastSentMs = this.#tools.clock.monotonicMs();
    if (full === undefined) return;
    const drained = full.then(() => {
      if (this.#draining !== drained) return;
      this.#draining = null;
      this.#lastSentMs = this.#tools.clock.monotonicMs();
    });
    this.#draining = drained;
  }

  /** A comment opens the stream, so a later failure is sent inside it. A client that does not read gets none. */
  #keepAlive(comment: string): void {
    const isOver = this.#hasLeft || this.#state.phase === 'ended';
    if (!this.#isPermitted || this.#draining !== null || isOver) return;
    // Opening may throw, as when an app that mounts the router has answered already: nothing may escape into the timer.
    try {
      this.#openStream(this.#writer());
      this.#write(comment);
    } catch (error) {
      this.#tools.onFault('keep-alive comment failed', error);
    }
  }

  #head(status: number, kind: AnswerKind, chargeNanos: number | null, refusal: Refusal | null): AnswerHead {
    const { contentType, isStream } = kind;
    return { ...this.#tools.headFacts(), status, contentType, isStream, chargeNanos, refusal };
  }

  /** The writer of an answer that has begun and not ended. */
  #writer(): AnswerWriter {
    const state = this.#state;
    if (state.phase === 'waiting' || state.phase === 'open') return state.writer;
    throw new Error(`delivery law broken: text while ${state.phase}`);
  }

  #expect(phase: DeliveryState['phase']): void {
    if (this.#state.phase !== phase)
      throw new Error(`delivery law broken: ${this.#state.phase} instead of ${phase}`);
  }

  /** Enters the `ended` state, once; returns the state before. */
  #end(): DeliveryState {
    const before = this.#state;
    if (before.phase === 'ended') throw new Error('delivery law broken: a second end');
    this.#state = ended;
    this.#stopKeepAlive?.();
    return before;
  }
}

/** Silence on a stream before a comment is sent, in milliseconds: proxies close idle connections after 30 or 60 s. */
const maxSilenceMs = 15_000;

/** Calls back after every 15 s without a sent byte; `lastSentMs` is on the monotonic clock. Returns a stop function. */
function watchSilence(clock: Clock, lastSentMs: () => number, onSilence: () => void): () => void {
  const beat = (): void => {
    const silentMs = clock.monotonicMs() - lastSentMs();
    const isDue = silentMs >= maxSilenceMs;
    if (isDue) onSilence();
    cancel = clock.schedule(isDue ? maxSilenceMs : maxSilenceMs - silentMs, beat);
  };
  let cancel = clock.schedule(maxSilenceMs, beat);
  return () => cancel();
}
