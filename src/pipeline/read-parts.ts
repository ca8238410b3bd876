import type { AnswerPart, Failure } from '../protocol/text.ts';
import type { UpstreamReader } from '../protocol/upstream/dialect.ts';
import type { BodyPiece, UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { endingOfFault } from './results.ts';
import type { AttemptEnding } from './results.ts';

/** The result of one read of an answer: some of its text, and how the attempt ended; `null` while it runs. */
export interface ReadPart {
  readonly deltas: readonly string[];
  readonly ending: AttemptEnding | null;
}

/** What the parts of an answer depend on beside its bytes. */
export interface PartTerms {
  readonly signal: AbortSignal;
  /** Names the cause of a fault for the operator. */
  readonly explain: (fault: UpstreamFault) => string;
  /** The same for a failure that the answer itself shows. */
  readonly withCause: (failure: Failure) => Failure;
  /** Called at the end of an answer whose reported usage is implausible. */
  readonly onImplausible: (why: string) => void;
}

/**
 * Reads an answer's parts at the moment of their arrival, without a promise for each, while `goesOn` returns true of them;
 * resolves with the first of which it does not. Must not be called after an ending, of which `goesOn` must return false.
 */
export function readParts(
  answer: UpstreamAnswer,
  reader: UpstreamReader,
  terms: PartTerms,
  goesOn: (part: ReadPart) => boolean,
): Promise<ReadPart> {
  return new Promise((resolve, reject) => {
    answer.consume((piece) => {
      // An error must not get into the code of the connection, which would take it for a fault of the upstream.
      try {
        const part = takePiece(piece, reader, terms);
        if (goesOn(part)) return true;
        resolve(part);
      } catch (error) {
        reject(error);
      }
      return false;
    });
  });
}

function takePiece(piece: BodyPiece, reader: UpstreamReader, terms: PartTerms): ReadPart {
  const part = partOf(piece, reader, terms);
  if (piece === null && part.ending === null)
    throw new Error('the body ended, but its reader returned no ending');
  if (part.ending !== null && reader.answer.implausible !== null)
    terms.onImplausible(reader.answer.implausible);
  return part;
}

function partOf(
  piece: BodyPiece,
  reader: UpstreamReader,
  { signal, explain, withCause }: PartTerms,
): ReadPart {
  if (piece === null) return explained(reader.end(), withCause);
  if (piece instanceof Uint8Array) return explained(reader.push(piece), withCause);
  const fault = { ...piece, cause: explain(piece) };
  return { deltas: [], ending: endingOfFault(fault, signal, reader.answer.knownUsage()) };
}

function explained(part: AnswerPart, withCause: PartTerms['withCause']): ReadPart {
  const { deltas, ending } = part;
  if (ending?.kind !== 'failed') return { deltas, ending };
  return { deltas, ending: { ...ending, failure: withCause(ending.failure) } };
}
