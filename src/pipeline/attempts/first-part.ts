import type { Clock } from '../../domain/ports/clock.ts';
import type { UpstreamAnswer, BodyPiece } from '../../domain/ports/upstreams.ts';
import type { Route } from '../../domain/routing.ts';
import type { AnswerPart } from '../../protocol/text.ts';
import type { UpstreamReader } from '../../protocol/upstream/dialect.ts';
import { interruptedBy, endingOfFault } from '../results.ts';
import type { AttemptEnding, FailedEnding } from '../results.ts';
import type { LoggedAttempt } from './attempt-log.ts';
import { reasonOf } from './attempt-stop.ts';
import type { AttemptStop } from './attempt-stop.ts';
import type { CallCauses } from './call-causes.ts';
import type { AttemptWatch } from './watch-attempt.ts';

/** An answer whose first good part has arrived. No other route is tried from here on. */
export interface OpenedAnswer {
  readonly kind: 'opened';
  readonly first: ReadPart;
  /**
   * Reads on, and hands each part's text to `send` as it arrives. Resolves with the ending; or with `null`
   * when `send` has returned false, because a client has to read before it gets more. Must not be called after an ending.
   */
  readOn(send: (deltas: readonly string[]) => boolean): Promise<AttemptEnding | null>;
  /** Drops the rest of the answer. */
  release(): void;
  /** Calls back when the call is over for the upstream, too; at once if it is. */
  whenOver(callback: () => void): void;
}

/** An attempt that failed before its first good part. */
export interface FailedAttempt {
  readonly kind: 'failed_attempt';
  readonly route: Route;
  readonly ending: FailedEnding;
  readonly logged: LoggedAttempt;
}

/** What the wait for the first part depends on beside its bytes. */
interface FirstPartTerms extends PartTerms {
  readonly stop: AttemptStop | null;
  readonly thinks: boolean;
  readonly clock: Clock;
}

/** Waits for the first good part of an answer, or for its failure before that. */
export async function awaitFirstPart(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  watch: AttemptWatch,
  terms: FirstPartTerms,
): Promise<OpenedAnswer | FailedAttempt> {
  const { stop } = terms;
  stop?.onLost(() => watch.lost(reader.answer.knownUsage()));
  const first = await readParts(answer, reader, terms, terms.thinks ? feedsBy(reader, terms) : isNothing);
  // A whole body is one part: with a bad end, none of it may be used.
  const isEmpty = first.deltas.length === 0 || reader.isWhole;
  if (isEmpty && first.ending !== null && first.ending.kind !== 'finished') {
    answer.release();
    return fail(watch, first.ending);
  }
  if (stop !== null && !(isAnswer(first) ? stop.opens() : await stop.opensEmpty())) {
    answer.release();
    return fail(watch, interruptedBy(terms.signal, reader.answer.knownUsage()));
  }
  watch.opened();
  if (first.ending !== null) watch.ended(first.ending);
  return {
    kind: 'opened',
    first,
    async readOn(send) {
      const isSent = ({ deltas, ending }: ReadPart): boolean =>
        (deltas.length === 0 || send(deltas)) && ending === null;
      const { ending } = await readParts(answer, reader, terms, isSent);
      if (ending !== null) watch.ended(ending);
      return ending;
    },
    release() {
      answer.release();
      watch.dropped();
    },
    whenOver: (callback) => answer.whenOver(callback),
  };
}

/** Notes that an attempt has failed. */
export function fail(watch: AttemptWatch, ending: FailedEnding): FailedAttempt {
  watch.ended(ending);
  return { kind: 'failed_attempt', route: watch.route, ending, logged: watch.logged };
}

/** Whether a part is an answer to go on with: a text, or that the provider blocked it, after which no other one is asked. */
function isAnswer({ deltas, ending }: ReadPart): boolean {
  return deltas.length > 0 || (ending?.kind === 'finished' && ending.reason === 'content_filter');
}

function isNothing({ deltas, ending }: ReadPart): boolean {
  return deltas.length === 0 && ending === null;
}

/** Has the thoughts of an answer put the deadline of its first text off. */
function feedsBy({ answer }: UpstreamReader, { stop, clock }: FirstPartTerms): (part: ReadPart) => boolean {
  let seenChars = 0;
  return (part) => {
    const { chars } = answer.thoughts;
    if (chars > seenChars) stop?.feed(clock.monotonicMs());
    seenChars = chars;
    return isNothing(part);
  };
}

/** The result of one read of an answer: some of its text, and how the attempt ended; `null` while it runs. */
interface ReadPart {
  readonly deltas: readonly string[];
  readonly ending: AttemptEnding | null;
}

/** What the parts of an answer depend on beside its bytes. */
interface PartTerms {
  readonly signal: AbortSignal;
  readonly causes: CallCauses;
}

/**
 * Reads an answer's parts as they arrive, without a promise for each, while `goesOn` returns true of them;
 * resolves with the first of which it does not. Must not be called after an ending, of which `goesOn` must return false.
 */
function readParts(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  terms: PartTerms,
  goesOn: (part: ReadPart) => boolean,
): Promise<ReadPart> {
  return new Promise((resolve, reject) => {
    answer.consume((piece) => {
      // An error must not get into the code of the connection: there it would end the process.
      try {
        const part = takePiece(piece, answer, reader, terms);
        if (goesOn(part)) return true;
        resolve(part);
      } catch (error) {
        reject(error);
      }
      return false;
    });
  });
}

function takePiece(
  piece: BodyPiece,
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  terms: PartTerms,
): ReadPart {
  const part = partOf(piece, answer, reader, terms);
  if (piece === null && part.ending === null)
    throw new Error('the body ended, but its reader returned no ending');
  if (part.ending !== null && reader.answer.implausible !== null)
    terms.causes.reportImplausible(reader.answer.implausible);
  return part;
}

function partOf(
  piece: BodyPiece,
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  { signal, causes }: PartTerms,
): ReadPart {
  if (piece === null) return explained(reader.end(), answer, causes);
  if (piece instanceof Uint8Array) return explained(reader.push(piece), answer, causes);
  const found = reasonOf(piece, signal);
  const fault = { ...found, cause: causes.explain(found) };
  return { deltas: [], ending: endingOfFault(fault, signal, reader.answer.knownUsage()) };
}

function explained(part: AnswerPart, answer: UpstreamAnswer, causes: CallCauses): ReadPart {
  const { deltas, ending } = part;
  if (ending?.kind !== 'failed') return part;
  return { deltas, ending: { ...ending, failure: causes.withCause(ending.failure, answer) } };
}
