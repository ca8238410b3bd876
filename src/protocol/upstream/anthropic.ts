import { isPlainObject } from '../../shared/parse-json.ts';
import type { UpstreamRequest } from '../text.ts';
import type { Answer } from './answer.ts';
import { readContent, readThoughts } from './content.ts';
import { splitConversation } from './conversation.ts';
import type { SpokenTurn } from './conversation.ts';
import type { Dialect, DialectRequest, Frame, FrameReader } from './dialect.ts';
import { errorAmong, invalidAnswer, toolCalled } from './failures.ts';

/** The output cap of a request without one, in tokens: the protocol requires a cap, and every model takes this. */
const defaultMaxTokens = 4_096;

/** Blocks without text that need no reaction from a client: thoughts, and tools that the provider runs itself. */
const silentBlocks =
  /^(?:thinking|redacted_thinking|server_tool_use|mcp_tool_use|.*_tool_result|compaction)$/;

/** Deltas without text: what a signed thought or a cited text refers to. */
const silentDeltas = new Set(['signature_delta', 'citations_delta']);

/** The Messages API of Anthropic and some gateways. */
export const anthropicDialect: Dialect = {
  auth: { header: 'x-api-key', prefix: '' },
  headers: { 'anthropic-version': '2023-06-01' },
  marksEnd: true,
  leastOutputTokens: 1,
  modelsPath: '/models?limit=1000',
  // Anthropic refuses a request with a stop sequence of white space alone.
  takesStop: (stop) => stop.every((sequence) => sequence.trim() !== ''),
  writeRequest,
  createFrameReader: () => new AnthropicFrameReader(),
};

function writeRequest(request: UpstreamRequest, upstreamModel: string): DialectRequest {
  const { system, turns } = splitConversation(request.turns);
  const body = {
    model: upstreamModel,
    max_tokens: request.maxOutputTokens ?? defaultMaxTokens,
    ...(system === '' ? {} : { system }),
    messages: turns.map((turn, index) => ({
      role: turn.role,
      content: index === turns.length - 1 ? textOfLast(turn) : turn.text,
    })),
    ...(request.stop.length === 0 ? {} : { stop_sequences: request.stop }),
    stream: request.stream,
  };
  return { path: '/messages', body: JSON.stringify(body) };
}

/** The model continues a last turn of its own; Anthropic refuses one that ends in white space. */
function textOfLast({ role, text }: SpokenTurn): string {
  return role === 'assistant' ? text.trimEnd() : text;
}

/** Remembers the type of the open block, because a block's deltas do not name it. */
class AnthropicFrameReader implements FrameReader {
  #block: unknown = null;

  readEvent(frame: Frame, name: string, answer: Answer): void {
    const type = typeof frame['type'] === 'string' ? frame['type'] : name;
    switch (type) {
      case 'message_start':
        return readStart(objectAt(frame, 'message'), answer);
      case 'content_block_start':
        this.#block = objectAt(frame, 'content_block')['type'];
        answer.hasMemory = true;
        answer.noteContent();
        return readBlock(frame['content_block'] ?? '', answer);
      case 'content_block_delta':
        return this.#readDelta(objectAt(frame, 'delta'), answer);
      case 'message_delta':
        answer.report(frame['usage'], 'beside');
        return readStopReason(objectAt(frame, 'delta'), answer);
      case 'message_stop':
        return answer.conclude('given');
      case 'error':
        return answer.failAsReported(frame['error'] ?? frame);
      default:
        if (errorAmong(frame['error']) !== null) answer.failAsReported(frame['error']);
        else if (type !== 'ping' && type !== 'content_block_stop') answer.violations.add('skipped_content');
    }
  }

  takeText(text: string, answer: Answer): void {
    answer.say(text);
  }

  readBody(body: Frame, answer: Answer): void {
    answer.report(body['usage'], 'beside');
    const { content, error } = body;
    if (errorAmong(error) !== null) return answer.failAsReported(error);
    if (!Array.isArray(content) && typeof content !== 'string')
      return answer.fail(invalidAnswer('an object that is no answer'));
    answer.noteContent();
    for (const block of typeof content === 'string' ? [content] : content) readBlock(block, answer);
    readStopReason(body, answer);
  }

  #readDelta(delta: Frame, answer: Answer): void {
    const { type } = delta;
    answer.noteContent();
    if (type === 'text_delta') readContent(delta['text'], answer);
    else if (type === 'thinking_delta') readThoughts(delta['thinking'], answer);
    else if (typeof type === 'string' && silentDeltas.has(type)) return;
    else if (isSilent(this.#block)) return;
    else if (type === 'input_json_delta') answer.fail(toolCalled());
    else readContent({ ...delta, type: 'text' }, answer);
  }
}

/** Some servers have the whole text in the first event already. */
function readStart({ usage, content }: Frame, answer: Answer): void {
  answer.report(usage, 'beside');
  if (!Array.isArray(content)) return;
  answer.noteContent();
  for (const block of content) readBlock(block, answer);
}

function readBlock(block: unknown, answer: Answer): void {
  const type = isPlainObject(block) ? block['type'] : undefined;
  if (isPlainObject(block) && type === 'text') readContent(block['text'] ?? '', answer);
  else if (type === 'tool_use') answer.fail(toolCalled());
  else if (!isSilent(type)) readContent(block, answer);
  else if (type === 'thinking' && isPlainObject(block)) readThoughts(block['thinking'], answer);
}

function isSilent(type: unknown): boolean {
  return typeof type === 'string' && silentBlocks.test(type);
}

function readStopReason(holder: Frame, answer: Answer): void {
  const reason = holder['stop_reason'];
  if (typeof reason === 'string' && reason !== '') answer.finishWith(reason);
}

function objectAt(frame: Frame, name: string): Frame {
  const value = frame[name];
  return isPlainObject(value) ? value : {};
}
