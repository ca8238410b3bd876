import { isPlainObject } from '../../shared/parse-json.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { firstAlternative, notText, readContent } from './content.ts';
import { splitConversation } from './conversation.ts';
import type { Dialect, DialectRequest, Frame, FrameReader } from './dialect.ts';
import { errorAmong, invalidAnswer, toolCalled } from './failures.ts';

/** Fields of a part beside its content. A part that has only these is empty, which is allowed. */
const annotations = new Set(['thought', 'thoughtSignature', 'partMetadata']);

/** Contents without text that need no reaction from a client: the code that the provider runs itself. */
const silentContents = ['executableCode', 'codeExecutionResult'];

/** Unset block reasons, as some answers write them out. */
const unsetReason = /^(?:BLOCK|BLOCKED)_REASON_UNSPECIFIED$/;

/** The reason of a blocked prompt. Clients don't get the provider's own one. */
const blockedReason = 'content_filter';

/** A stateless frame reader: `Answer` keeps all state. */
const frameReader: FrameReader = {
  readEvent: readFrame,
  takeText: (text, answer) => answer.say(text),
  readBody,
  readList,
};

/** Google's generateContent API, below a base URL such as `https://host/v1beta` (or, at Vertex, the publisher's). */
export const geminiDialect: Dialect = {
  auth: { header: 'x-goog-api-key', prefix: '' },
  marksEnd: false,
  leastOutputTokens: 1,
  modelsPath: '/models?pageSize=1000',
  takesStop: () => true,
  writeRequest,
  createFrameReader: () => frameReader,
};

function writeRequest(request: UpstreamRequest, upstreamModel: string): DialectRequest {
  const { system, turns } = splitConversation(request.turns);
  const { maxOutputTokens: cap, stop } = request;
  const settings = {
    ...(cap === null ? {} : { maxOutputTokens: cap }),
    ...(stop.length === 0 ? {} : { stopSequences: stop }),
  };
  const body = {
    ...(system === '' ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    contents: turns.map(({ role, text }) => ({
      role: role === 'assistant' ? 'model' : role,
      parts: [{ text }],
    })),
    ...(Object.keys(settings).length === 0 ? {} : { generationConfig: settings }),
  };
  const action = request.stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return { path: `/${resourceOf(upstreamModel)}:${action}`, body: JSON.stringify(body) };
}

/** A model's path. Its name is encoded as one segment, so that no name can lead to another path. */
function resourceOf(model: string): string {
  const [, kind = 'models', name = ''] = /^(?:(models|tunedModels)\/)?([^]*)$/.exec(model) ?? [];
  return `${kind}/${encodeURIComponent(name.toWellFormed())}`;
}

/** Reads an event of a stream, or a whole answer: both have the same fields. */
function readFrame(frame: Frame, name: string, answer: Answer): void {
  const { candidates, usageMetadata } = frame;
  answer.report(usageMetadata, 'inside');
  const error = errorAmong(frame['error']);
  if (error !== null || name === 'error') return answer.failAsReported(error ?? frame);
  const candidate = firstAlternative(candidates, answer);
  if (candidate !== null) readParts(candidate, answer);
  // Every event may have a finish reason: at the end of the body the weightiest of them counts.
  const reason = isBlocked(frame['promptFeedback']) ? blockedReason : candidate?.['finishReason'];
  if (isSet(reason)) answer.finishWith(reason);
}

function readBody(body: Frame, answer: Answer): void {
  readFrame(body, '', answer);
  if (!Array.isArray(body['candidates']) && !isPlainObject(body['promptFeedback']))
    answer.fail(invalidAnswer('an object that is no answer'));
}

/** Without `alt=sse`, Google answers a stream request with the list of the stream's events. */
function readList(frames: readonly Frame[], answer: Answer): void {
  for (const frame of frames) readFrame(frame, '', answer);
}

function readParts({ content }: Frame, answer: Answer): void {
  if ((content ?? null) === null) return;
  answer.noteContent();
  const parts: unknown = isPlainObject(content) ? (content['parts'] ?? content['text'] ?? []) : content;
  for (const part of Array.isArray(parts) ? parts : [parts]) {
    if (isPlainObject(part)) readPart(part, answer);
    else readContent(part, answer);
  }
}

function readPart(part: Frame, answer: Answer): void {
  const { text } = part;
  if (isPlainObject(part['functionCall'])) answer.fail(toolCalled());
  else if (part['thought'] === true) answer.think(text);
  else if (silentContents.some((name) => isPlainObject(part[name]))) return;
  else if (typeof text === 'string') answer.say(text);
  else if (!Object.keys(part).every((name) => annotations.has(name))) answer.fail(notText());
}

/** Whether the prompt was blocked. Usually there are no candidates then, or one with a finish reason of its own. */
function isBlocked(feedback: unknown): boolean {
  return isPlainObject(feedback) && isSet(feedback['blockReason']);
}

function isSet(reason: unknown): reason is string {
  return typeof reason === 'string' && reason !== '' && !unsetReason.test(reason);
}
