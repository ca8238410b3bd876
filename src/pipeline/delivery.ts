import { statusOf } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { jsonType } from '../protocol/answer-writer.ts';
import type { AnswerWriter } from '../protocol/answer-writer.ts';
import type { FinishedAnswer } from '../protocol/text.ts';
import { writeRefusal } from '../protocol/write-refusal.ts';
import type { AnswerHead, ClientConnection, HeadFacts } from './client-connection.ts';
import { watchSilence } from './keep-alive.ts';

/**
 * - `reading`: the request is not understood yet, so any answer is an HTTP error;
 * - `waiting`: the writer is chosen, and nothing has gone out;
 * - `open`: a part of a stream went out, so the status is spent;
 * - `passing`: the upstream's own head went out;
 * - `ended`: the last byte was handed over.
 */
type State =
  | { readonly phase: 'reading' }
  | { readonly phase: 'waiting'; readonly writer: AnswerWriter }
  | { readonly phase: 'open'; readonly writer: AnswerWriter }
  | { readonly phase: 'passing'; readonly isWhole: boolean }
  | { readonly phase: 'ended' };

interface DeliveryTools {
  readonly clock: Clock;
  /** Raised when the request must stop: nothing waits for a client that is full any more. */
  readonly signal: AbortSignal;
  /** What the head of an answer says of its key and its request, as far as the request has come. */
  readonly headFacts: () => HeadFacts;
  /** Called when the first part of a stream goes out. */
  readonly onOpened: () => void;
  readonly onFault: ReportFault;
}

/**
 * One client's side of an exchange: all that goes out to it goes through here. The law: at most one head, parts only
 * behind a head and only once the request is recorded, one end, and nothing after it. A call that would break it throws.
 */
export class Delivery {
  readonly #client: ClientConnection;
  readonly #tools: DeliveryTools;
  #state: State = { phase: 'reading' };
  #isPermitted = false;
  #hasLeft = false;
  #isSending = false;
  #lastSentMs: number;
  #firstTextSentMs: number | null = null;
  #sentStatus: number | null = null;
  #wasOpened = false;
  #stopKeepAlive = (): void => {};

  constructor(client: ClientConnection, tools: DeliveryTools) {
    this.#client = client;
    this.#tools = tools;
    this.#lastSentMs = tools.clock.monotonicMs();
  }

  /** Whether the client is gone. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Whether a part of a stream went out. */
  get wasOpened(): boolean {
    return this.#wasOpened;
  }

  /** Whether the upstream's own head went out. */
  get isPassing(): boolean {
    return this.#state.phase === 'passing';
  }

  /** When the first text went out in a stream, on the monotonic clock; `null` when none did. */
  get firstTextSentMs(): number | null {
    return this.#firstTextSentMs;
  }

  /** The status of a head that went out before the end; `null` when none did. */
  get sentStatus(): number | null {
    return this.#sentStatus;
  }

  /** Calls back once the client leaves before the end, or if it has left already. */
  onLeft(callback: () => void): void {
    this.#client.onGone(() => {
      this.#hasLeft = true;
      callback();
    });
  }

  /** Chooses how the answer is written. From now on a silent stream is kept alive, as soon as bytes may go out. */
  begin(writer: AnswerWriter): void {
    this.#expect('reading');
    this.#state = { phase: 'waiting', writer };
    if (writer.keepAlive === '') return;
    this.#stopKeepAlive = watchSilence(
      this.#tools.clock,
      () => this.#lastSentMs,
      () => this.#keepAlive(writer.keepAlive),
    );
  }

  /** The request is recorded, so bytes may go out. */
  permit(): void {
    this.#isPermitted = true;
  }

  /** Sends pieces of text as one part of a stream, or keeps them for a whole answer; waits while the client is full. */
  async send(deltas: readonly string[]): Promise<void> {
    if (this.#hasLeft || deltas.length === 0) return;
    const writer = this.#writer();
    const text = deltas.map((delta) => writer.delta(delta)).join('');
    if (text === '') return;
    this.#openStream(writer);
    this.#firstTextSentMs ??= this.#tools.clock.monotonicMs();
    await this.#write(text);
  }

  /** Sends the head of a stream that ended without text, so that its failure to be settled can't change its status. */
  open(): void {
    const writer = this.#writer();
    if (!this.#hasLeft && writer.isStream) this.#openStream(writer);
  }

  /** No part follows, only the end: what the summary says of the client's side must stay true while it is settled. */
  seal(): void {
    this.#stopKeepAlive();
  }

  /** Sends the end of a finished answer. This and the other ends resolve when the bytes are out, or can't get out. */
  finish(finished: FinishedAnswer): Promise<void> {
    const writer = this.#writer();
    const last = writer.finish(finished, Math.floor(this.#tools.clock.now() / 1_000));
    const { phase } = this.#end();
    return phase === 'open' ? this.#client.end(last) : this.#client.answer(this.#head(200, writer), last);
  }

  /** Sends a failure: an HTTP error while the status is not spent, and in the protocol's own way after that. */
  fail(refusal: Refusal): Promise<void> {
    const ended = this.#end();
    if (ended.phase !== 'open') {
      const status = statusOf(refusal.code);
      const head = { ...this.#tools.headFacts(), status, contentType: jsonType, isStream: false, refusal };
      return this.#client.answer(head, writeRefusal(refusal));
    }
    const last = ended.writer.fail(refusal);
    return ended.writer.tearDownOnFailure ? this.#client.tearDown(last) : this.#client.end(last);
  }

  /** The upstream's own head went out, past any writer. */
  passHead(status: number): void {
    this.#expect('reading');
    this.#state = { phase: 'passing', isWhole: false };
    this.#sentStatus = status;
  }

  /** All of the upstream's body went out. */
  passWhole(): void {
    this.#expect('passing');
    this.#state = { phase: 'passing', isWhole: true };
  }

  /** Ends an answer that was passed on; one that is not whole is torn down, so that no client takes it for whole. */
  endPassing(): Promise<void> {
    const ended = this.#end();
    return ended.phase === 'passing' && ended.isWhole ? this.#client.end('') : this.#client.tearDown('');
  }

  /** Ends without a byte, because the client left. */
  abandon(): void {
    this.#end();
  }

  /** Breaks the connection, because an end could not be written. */
  tearDown(): Promise<void> {
    if (this.#state.phase !== 'ended') this.#end();
    return this.#client.tearDown('');
  }

  #openStream(writer: AnswerWriter): void {
    if (this.#state.phase === 'open') return;
    if (!this.#isPermitted) throw new Error('delivery law broken: a part before the request is recorded');
    this.#client.open(this.#head(200, writer));
    this.#state = { phase: 'open', writer };
    this.#wasOpened = true;
    this.#sentStatus = 200;
    this.#tools.onOpened();
  }

  async #write(text: string): Promise<void> {
    const full = this.#client.send(text, this.#tools.signal);
    if (full !== undefined) {
      this.#isSending = true;
      await full;
      this.#isSending = false;
    }
    this.#lastSentMs = this.#tools.clock.monotonicMs();
  }

  /** A comment opens the stream, so a failure after it is one inside the stream. None goes out to a full client. */
  #keepAlive(comment: string): void {
    if (!this.#isPermitted || this.#isSending || this.#hasLeft) return;
    this.#openStream(this.#writer());
    this.#write(comment).catch((error: unknown) => this.#tools.onFault('keep-alive comment failed', error));
  }

  #head(status: number, { contentType, isStream }: AnswerWriter): AnswerHead {
    return { ...this.#tools.headFacts(), status, contentType, isStream, refusal: null };
  }

  /** The writer of an answer that has begun and not ended. */
  #writer(): AnswerWriter {
    const state = this.#state;
    if (state.phase === 'waiting' || state.phase === 'open') return state.writer;
    throw new Error(`delivery law broken: text while ${state.phase}`);
  }

  #expect(phase: State['phase']): void {
    if (this.#state.phase !== phase)
      throw new Error(`delivery law broken: ${this.#state.phase} instead of ${phase}`);
  }

  /** Goes to the end, once; returns where it was before. */
  #end(): State {
    const before = this.#state;
    if (before.phase === 'ended') throw new Error('delivery law broken: a second end');
    this.#state = { phase: 'ended' };
    this.#stopKeepAlive();
    return before;
  }
}
