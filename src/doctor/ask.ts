import type { UpstreamAnswer, UpstreamCall, UpstreamFault } from '../domain/ports/upstreams.ts';
import { mostTokensOf } from '../domain/money/hold-estimate.ts';
import type { ModelSource } from '../domain/routing.ts';
import type { AnswerEnding, Failure, ProtocolViolation } from '../protocol/text.ts';
import { classifyStatus } from '../protocol/upstream/classify-error.ts';
import type { DialectName } from '../protocol/upstream/dialects.ts';
import type { Dialect, UpstreamReader } from '../protocol/upstream/dialect.ts';
import { failure } from '../protocol/upstream/failures.ts';
import { createReader } from '../protocol/upstream/read-answer.ts';
import type { AnswerTerms } from '../protocol/upstream/read-answer.ts';
import { createSanitiser } from '../protocol/upstream/words/sanitise.ts';
import type { DoctorPorts } from './target.ts';

/** How much of one answer is read, in bytes: far more than the requested text and its frames need. */
const maxAnswerBytes = 1_048_576;

/** How long events after the end of an answer are awaited, in milliseconds. */
const lateEventsMs = 500;

/** How an upstream is asked: its dialect by name, and its settings. */
export interface Asked {
  readonly dialect: DialectName;
  readonly source: ModelSource;
  /** Whether the list of models was read at the base URL. */
  readonly hasList: boolean;
}

/** A question to a model. */
export interface Question {
  readonly model: string;
  readonly text: string;
  readonly stream: boolean;
  /** The output cap, in tokens. */
  readonly maxOutputTokens: number;
  /** The stop sequences; absent for none. */
  readonly stop?: readonly string[];
}

/** The upstream did not answer. */
export interface Unanswered {
  readonly kind: 'unanswered';
  /** The path of the call. */
  readonly path: string;
  readonly fault: UpstreamFault;
  readonly totalMs: number;
}

/** The upstream answered with a status other than 2xx. */
export interface RefusedAnswer {
  readonly kind: 'refused';
  /** The path of the call. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly failure: Failure;
  readonly totalMs: number;
}

/** An answer as the gateway reads it, and its bytes for further checks. */
export interface ReadAnswer {
  readonly kind: 'read';
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly terms: AnswerTerms;
  /** The pieces of text, in the order of their arrival. */
  readonly deltas: readonly string[];
  readonly ending: AnswerEnding;
  readonly violations: ReadonlySet<ProtocolViolation>;
  /** Why the reported usage can't be true; `null` if it can. */
  readonly implausible: string | null;
  /** The size of the model's thoughts, in UTF-16 code units. */
  readonly thoughtChars: number;
  /** The time to the first text, in milliseconds; `null` without text. */
  readonly firstTextMs: number | null;
  readonly totalMs: number;
}

export type Observation = Unanswered | RefusedAnswer | ReadAnswer;

/** Asks one question as the gateway would, and reads the answer with the gateway's own reader. */
export async function ask(
  { model, text, stream, maxOutputTokens, stop = [] }: Question,
  source: ModelSource,
  ports: DoctorPorts,
): Promise<Observation> {
  const { upstream, dialect, quirks, finishReason, thoughtTag } = source;
  const turns = [{ role: 'user', text }] as const;
  const { path, body } = dialect.writeRequest({ turns, stream, maxOutputTokens, stop }, model, quirks);
  const sanitise = createSanitiser({ turns, clientKey: '', upstream: source.secrets, names: [model] });
  const startedMs = ports.clock.monotonicMs();
  const answer = await callUpstream({ upstream, method: 'POST', path, body, stream }, ports);
  const totalMs = (): number => ports.clock.monotonicMs() - startedMs;
  if (answer.kind === 'fault') return { kind: 'unanswered', path, fault: answer, totalMs: totalMs() };
  const { status, contentType, retryAfterMs } = answer;
  if (status < 200 || status >= 300) {
    const read = await readText(answer);
    const refusal = typeof read === 'string' ? read : '';
    const failed = classifyStatus(status, refusal, retryAfterMs, sanitise);
    return { kind: 'refused', path, status, contentType, body: refusal, failure: failed, totalMs: totalMs() };
  }
  const sentTokens = mostTokensOf(turns);
  const asked = { streamAsked: stream, finishReason, thoughtTag, sentTokens, sanitise };
  const terms = { contentType, ...asked, isFast: false };
  return readAnswer(answer, dialect, terms, startedMs, ports);
}

/** Sends one call; once more on a new connection if a kept one was closed meanwhile. Throws once the signal is raised. */
export async function callUpstream(
  call: Pick<UpstreamCall, 'upstream' | 'method' | 'path' | 'body' | 'stream'>,
  { upstreams, callMs: leftMs, signal }: DoctorPorts,
): Promise<UpstreamAnswer | UpstreamFault> {
  signal.throwIfAborted();
  const answer = await upstreams.call({ ...call, leftMs, fresh: false }, signal);
  const isStale = answer.kind === 'fault' && answer.fault === 'stale';
  return isStale ? upstreams.call({ ...call, leftMs, fresh: true }, signal) : answer;
}

async function readAnswer(
  answer: UpstreamAnswer,
  dialect: Dialect,
  terms: AnswerTerms,
  startedMs: number,
  { clock }: DoctorPorts,
): Promise<ReadAnswer> {
  const reader = createReader(dialect, terms);
  const chunks: Uint8Array[] = [];
  const deltas: string[] = [];
  let size = 0;
  let firstTextMs: number | null = null;
  let ending: AnswerEnding | null = null;
  let totalMs = 0;
  let part: Part = null;
  while (ending === null) {
    part = await answer.read();
    const taken = takePart(part, reader);
    totalMs = clock.monotonicMs() - startedMs;
    if (taken.deltas.length > 0) firstTextMs ??= totalMs;
    deltas.push(...taken.deltas);
    if (part instanceof Uint8Array) {
      chunks.push(part);
      size += part.length;
    }
    ending = taken.ending ?? (size > maxAnswerBytes ? tooLong : null);
  }
  const isOpen = ending.kind === 'finished' && part !== null;
  const late = isOpen ? await readLate(answer, clock) : [];
  answer.release();
  const { violations, implausible, thoughts } = reader.answer;
  const bytes = Buffer.concat([...chunks, ...late]);
  return {
    kind: 'read',
    status: answer.status,
    contentType: terms.contentType,
    bytes,
    terms,
    deltas,
    ending,
    violations: late.length === 0 ? violations : violationsOf(bytes, dialect, terms),
    implausible,
    thoughtChars: thoughts.chars,
    firstTextMs,
    totalMs,
  };
}

/** The violations of a whole body, with those after its end: a reader notes them only together with the end. */
function violationsOf(
  bytes: Uint8Array,
  dialect: Dialect,
  terms: AnswerTerms,
): ReadonlySet<ProtocolViolation> {
  const reader = createReader(dialect, terms);
  reader.push(bytes);
  reader.end();
  return reader.answer.violations;
}

const tooLong: AnswerEnding = {
  kind: 'failed',
  failure: failure('invalid', { detail: 'more than 1 MiB for a short answer' }),
  usage: null,
};

type Part = Uint8Array | null | UpstreamFault;

function takePart(
  part: Part,
  reader: UpstreamReader,
): Pick<ReadAnswer, 'deltas'> & { ending: AnswerEnding | null } {
  if (part === null) return reader.end();
  if (part instanceof Uint8Array) return reader.push(part);
  return { deltas: [], ending: { kind: 'failed', failure: failureOf(part), usage: null } };
}

/** The failure of an answer whose connection failed, or which can't be decoded; its detail is the fault's code. */
function failureOf({ fault, code = '', cause }: UpstreamFault): Failure {
  return failure(fault === 'interrupted' ? 'broken' : fault, { detail: code, cause: cause ?? null });
}

/** Reads what comes after the end of an answer, while it comes soon: a connection may stay open for long. */
async function readLate(answer: UpstreamAnswer, clock: DoctorPorts['clock']): Promise<readonly Uint8Array[]> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.schedule(lateEventsMs, () => late.resolve(null));
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size <= maxAnswerBytes) {
    const part = await Promise.race([answer.read(), late.promise]);
    if (!(part instanceof Uint8Array)) break;
    chunks.push(part);
    size += part.length;
  }
  cancel();
  return chunks;
}

/** Reads a body as text: the fault that broke it off, if one did, and `null` if it is over 1 MiB. */
export async function readText(answer: UpstreamAnswer): Promise<string | UpstreamFault | null> {
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  while (size <= maxAnswerBytes) {
    const part = await answer.read();
    if (part === null) return text + decoder.decode();
    if (!(part instanceof Uint8Array)) return part;
    size += part.length;
    text += decoder.decode(part, { stream: true });
  }
  answer.release();
  return null;
}
