import type { AnswerPart } from '../../protocol/text.ts';
import type { UpstreamReader } from '../../protocol/upstream/dialect.ts';
import type { BodyPiece, UpstreamAnswer } from '../../domain/ports/upstreams.ts';
import { reasonOf } from './attempt-stop.ts';
import type { CallCauses } from './call-causes.ts';
import { endingOfFault } from '../results.ts';
import type { AttemptEnding } from '../results.ts';

/** The result of one read of an answer: some of its text, and how the attempt ended; `null` while it runs. */
export interface ReadPart {
  readonly deltas: readonly string[];
  readonly ending: AttemptEnding | null;
}

/** What the parts of an answer depend on beside its bytes. */
export interface PartTerms {
  readonly signal: AbortSignal;
  readonly causes: CallCauses;
}

/**
 * Reads an answer's parts as they arrive, without a promise for each, while `goesOn` returns true of them;
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
