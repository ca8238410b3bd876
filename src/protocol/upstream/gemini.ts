import { isPlainObject } from '../../shared/parse-json.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { splitConversation } from './conversation.ts';
import type { Dialect, DialectRequest, Frame, FrameReader } from './dialect.ts';
import { invalidAnswer, toolCalled } from './failures.ts';
import { classifyReported } from './classify-error.ts';
import type { UsageNames } from './token-counts.ts';

/** Thoughts are left out of the candidates' count, and what the provider's own tools gave out of the prompt's. */
const usageNames: UsageNames = {
  input: ['promptTokenCount', 'toolUsePromptTokenCount'],
  output: ['candidatesTokenCount', 'thoughtsTokenCount'],
  total: 'totalTokenCount',
  cached: [['cachedContentTokenCount']],
  cacheWrite: [],
  reasoning: [['thoughtsTokenCount']],
};

/** What a part may hold beside its content: without any content it says nothing, which is allowed. */
const annotations = new Set(['thought', 'thoughtSignature', 'partMetadata']);

/** Contents without text that need nothing from a client: the code that the provider runs itself. */
const silentContents = ['executableCode', 'codeExecutionResult'];

/** What an unset finish reason looks like where it is written out. */
const unsetReason = 'FINISH_REASON_UNSPECIFIED';

/** A frame reader without a memory: all that an answer's end needs to know is in `Answer`. */
const frameReader: FrameReader = { readEvent: readFrame, readBody, readList };

/** Google's generateContent, below a base URL such as `https://host/v1beta` (or, at Vertex, the publisher's). */
export const geminiDialect: Dialect = {
  auth: { header: 'x-goog-api-key', prefix: '' },
  marksEnd: false,
  leastOutputTokens: 1,
  modelsPath: '/models?pageSize=1000',
  writeRequest,
  createFrameReader: () => frameReader,
};

function writeRequest(request: UpstreamRequest, upstreamModel: string): DialectRequest {
  const { system, turns } = splitConversation(request.turns);
  const cap = request.maxOutputTokens;
  const body = {
    ...(system === '' ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    contents: turns.map(({ role, text }) => ({
      role: role === 'assistant' ? 'model' : role,
      parts: [{ text }],
    })),
    ...(cap === null ? {} : { generationConfig: { maxOutputTokens: cap } }),
  };
  const action = request.stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return { path: `/${resourceOf(upstreamModel)}:${action}`, body: JSON.stringify(body) };
}

/** A model's place in the path. Its name is one segment, so that none can lead to another place. */
function resourceOf(model: string): string {
  const [, kind = 'models', name = ''] = /^(?:(models|tunedModels)\/)?([^]*)$/.exec(model) ?? [];
  return `${kind}/${encodeURIComponent(name.toWellFormed())}`;
}

/** A whole answer looks like an event of a stream: what may be in the one may be in the other. */
function readFrame(frame: Frame, name: string, answer: Answer): void {
  const { error = null, candidates, usageMetadata } = frame;
  answer.report(usageMetadata, usageNames);
  if (error !== null || name === 'error') return answer.fail(classifyReported(error ?? frame));
  const candidate = firstCandidate(candidates);
  if (candidate === null) readBlockReason(frame['promptFeedback'], answer);
  else readCandidate(candidate, answer);
}

function readBody(body: Frame, answer: Answer): void {
  readFrame(body, '', answer);
  if (!Array.isArray(body['candidates']) && !isPlainObject(body['promptFeedback']))
    answer.fail(invalidAnswer('an object that is no answer'));
}

/** A stream that was not asked to be one of events is a list of what they would have been. */
function readList(frames: readonly Frame[], answer: Answer): void {
  for (const frame of frames) readFrame(frame, '', answer);
}

/** The candidate with index 0: others can't be asked for, and would mix two texts into one. */
function firstCandidate(candidates: unknown): Frame | null {
  if (!Array.isArray(candidates)) return null;
  const first: unknown = candidates.find((found) => isPlainObject(found) && (found['index'] ?? 0) === 0);
  return isPlainObject(first) ? first : null;
}

/** A reason may come with every event, and another one after it: only the last counts, at the end of the body. */
function readCandidate({ content, finishReason }: Frame, answer: Answer): void {
  const parts = isPlainObject(content) ? content['parts'] : null;
  for (const part of Array.isArray(parts) ? parts : []) {
    if (isPlainObject(part)) readPart(part, answer);
  }
  if (typeof finishReason === 'string' && finishReason !== '' && finishReason !== unsetReason)
    answer.finishWith(finishReason);
}

function readPart(part: Frame, answer: Answer): void {
  const { text } = part;
  if (isPlainObject(part['functionCall'])) answer.fail(toolCalled());
  else if (part['thought'] === true) answer.think(text);
  else if (silentContents.some((name) => isPlainObject(part[name]))) return;
  else if (typeof text === 'string') answer.say(text);
  else if (!Object.keys(part).every((name) => annotations.has(name)))
    answer.fail(invalidAnswer('a content that is not text'));
}

/** A question that was blocked has no candidate at all; why it was blocked is not told to clients. */
function readBlockReason(feedback: unknown, answer: Answer): void {
  const reason = isPlainObject(feedback) ? feedback['blockReason'] : null;
  if (typeof reason === 'string' && reason !== '') answer.finishWith('content_filter');
}
