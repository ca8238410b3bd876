import type { DialectName } from '../../src/protocol/upstream/dialects.ts';

/**
 * Reads a recorded body with code that shares nothing with the gateway: lines instead of a parser, everything in memory,
 * one expression per question.
 */
export interface Reading {
  readonly text: string;
  /** `tool`: it ends with a tool call. `failure`: an error, or no complete end. */
  readonly ending: 'stop' | 'length' | 'content_filter' | 'tool' | 'failure';
  /** Input and output tokens of the last usage. */
  readonly usage: readonly [number, number] | null;
}

/* eslint-disable typescript/no-explicit-any -- recordings have no type that could be relied on */
type Json = any;

/** Reads a body of `protocol`: a stream of `data:` lines or one JSON object. */
export function readIndependently(protocol: DialectName, body: string, isStream: boolean): Reading {
  const readers = { chat: readChat, responses: readResponses, anthropic: readAnthropic, gemini: readGemini };
  try {
    return readers[protocol](isStream ? framesOf(body) : [JSON.parse(body)], isStream);
  } catch {
    return { text: '', ending: 'failure', usage: null };
  }
}

function framesOf(body: string): Json[] {
  const data = body
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim());
  const done = data.findIndex((line) => line === '[DONE]' || /^\{.*"type": *"message_stop".*\}$/.test(line));
  return (done === -1 ? data : data.slice(0, done))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const endings: Readonly<Record<string, Reading['ending']>> = {
  stop: 'stop',
  eos: 'stop',
  eos_token: 'stop',
  length: 'length',
  content_filter: 'content_filter',
  tool_calls: 'tool',
  function_call: 'tool',
};

function readChat(frames: Json[], isStream: boolean): Reading {
  const key = isStream ? 'delta' : 'message';
  const choices = frames
    .flatMap((frame) => frame.choices ?? [])
    .filter((choice) => (choice.index ?? 0) === 0);
  const parts = choices.map((choice) => choice[key] ?? { content: choice.text ?? '' });
  const isUnread = choices.every((choice) => !choice.message && !choice.delta && choice.text === undefined);
  const text = parts.map((part) => plain(part.content) + (part.refusal ?? '')).join('');
  const reason = choices.map((choice) => choice.finish_reason).findLast((found) => typeof found === 'string');
  const hasTools = parts.some((part) => part.tool_calls?.length > 0 || part.function_call);
  const hasError = frames.some((frame) => frame.error);
  const used = frames
    .map((frame) => frame.usage ?? frame.x_groq?.usage)
    .findLast((found) => found?.prompt_tokens >= 0);
  return {
    text,
    ending:
      hasError || (isUnread && reason === 'stop')
        ? 'failure'
        : hasTools
          ? 'tool'
          : (endings[reason ?? ''] ?? 'failure'),
    usage: used ? counts(promptOf(used), used.completion_tokens, used.total_tokens) : null,
  };
}

function readResponses(frames: Json[], isStream: boolean): Reading {
  const last = isStream
    ? frames.find((frame) => /^response\.(completed|incomplete|failed)$/.test(frame.type))
    : { type: `response.${frames[0].status}`, response: frames[0] };
  const items = frames.map((frame) => frame.item).concat(last?.response?.output ?? []);
  const messages = (last?.response?.output ?? []).filter((item: Json) => item.type === 'message');
  const whole = messages
    .flatMap((item: Json) => item.content)
    .map((part: Json) => part.text ?? part.refusal ?? '');
  const deltas = frames.filter((frame) => /^response\.(output_text|refusal)\.delta$/.test(frame.type));
  const hasTools = items.some((item) =>
    /^(function_call|custom_tool_call|program|mcp_approval_request)$/.test(item?.type),
  );
  const reason =
    last?.response?.incomplete_details?.reason === 'content_filter' ? 'content_filter' : 'length';
  const ending =
    ({ 'response.completed': 'stop', 'response.incomplete': reason } as Json)[last?.type] ?? 'failure';
  const used = last?.response?.usage;
  return {
    text: isStream ? deltas.map((frame) => frame.delta).join('') : whole.join(''),
    ending: frames.some((frame) => frame.error)
      ? 'failure'
      : hasTools
        ? 'tool'
        : (ending as Reading['ending']),
    usage: used ? counts(used.input_tokens, used.output_tokens, used.total_tokens) : null,
  };
}

const anthropicEndings: typeof endings = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
  tool_use: 'tool',
};

function readAnthropic(frames: Json[], isStream: boolean): Reading {
  const [whole] = frames;
  const blocks = isStream ? frames.map((frame) => frame.content_block ?? {}) : whole.content;
  const pieces = isStream ? frames.map((frame) => frame.delta ?? {}) : whole.content;
  const reason = (isStream ? pieces : [whole]).map((piece: Json) => piece.stop_reason).findLast(Boolean);
  const used = Object.assign({}, ...frames.map((frame) => frame.message?.usage ?? frame.usage));
  const { input_tokens: fresh, cache_read_input_tokens: read, cache_creation_input_tokens: written } = used;
  const hasTools = blocks.some((block: Json) => block.type === 'tool_use');
  const hasError = frames.some((frame) => frame.type === 'error' || frame.error);
  return {
    text: pieces.map((piece: Json) => piece.text ?? '').join(''),
    ending: hasError ? 'failure' : hasTools ? 'tool' : (anthropicEndings[reason] ?? 'failure'),
    usage: used.output_tokens >= 0 ? [(fresh ?? 0) + (read ?? 0) + (written ?? 0), used.output_tokens] : null,
  };
}

const geminiEndings: typeof endings = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
};

function readGemini(frames: Json[]): Reading {
  const candidates = frames.flatMap((frame) => frame.candidates ?? []);
  const parts = candidates.flatMap((candidate) => candidate.content?.parts ?? []);
  const isBlocked = frames.some((frame) => frame.promptFeedback?.blockReason);
  const reason = candidates.map((candidate) => candidate.finishReason).findLast(Boolean);
  const isOvertaken =
    candidates.findLastIndex((candidate) => candidate.finishReason) <
    candidates.findLastIndex((candidate) =>
      candidate.content?.parts?.some((part: Json) => part.text && !part.thought),
    );
  const used = frames
    .map((frame) => frame.usageMetadata)
    .findLast((found) => found?.promptTokenCount >= 0 || found?.candidatesTokenCount >= 0);
  const sum = (...counted: Json[]) => counted.reduce((left, right) => left + (right ?? 0), 0);
  const hasTools = parts.some((part) => part.functionCall);
  return {
    text: parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join(''),
    ending: hasTools
      ? 'tool'
      : isOvertaken
        ? 'failure'
        : (geminiEndings[reason ?? (isBlocked ? 'SAFETY' : '')] ?? 'failure'),
    usage: used
      ? counts(
          sum(used.promptTokenCount, used.toolUsePromptTokenCount),
          sum(used.candidatesTokenCount, used.thoughtsTokenCount),
          used.totalTokenCount,
        )
      : null,
  };
}

/** More cached input than prompt can only stand beside it (Grok at Azure). */
function promptOf(used: Json): number {
  const cached = used.prompt_tokens_details?.cached_tokens ?? 0;
  return used.prompt_tokens + (cached > used.prompt_tokens ? cached : 0);
}

function plain(content: Json): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part: Json) => (part.type === 'text' ? part.text : '')).join('');
}

function counts(input: number, output: number, total: number): readonly [number, number] {
  return [input, Math.max(output, (total ?? 0) - input)];
}
