import type { FinishReason } from '../text.ts';

/** The finish reasons of providers by their unified form, as each provider writes them. */
const known: Readonly<Record<FinishReason, readonly string[]>> = {
  stop: ['stop', 'STOP', 'eos', 'eos_token', 'end_turn', 'stop_sequence', 'STOP_SEQUENCE', 'COMPLETE'],
  length: [
    'length',
    'model_length',
    'max_tokens',
    'max_output_tokens',
    'MAX_TOKENS',
    'model_context_window_exceeded',
    'ERROR_LIMIT',
  ],
  content_filter: [
    'content_filter',
    'content_filtered',
    'guardrail_intervened',
    'safety',
    'sensitive',
    'refusal',
    'SAFETY',
    'RECITATION',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'SPII',
    'LANGUAGE',
    'MODEL_ARMOR',
    'JAILBREAK',
    'IMAGE_SAFETY',
    'IMAGE_RECITATION',
    'IMAGE_PROHIBITED_CONTENT',
    'ERROR_TOXIC',
  ],
};

const unified: ReadonlyMap<string, FinishReason> = new Map(
  (Object.keys(known) as FinishReason[]).flatMap((reason) => known[reason].map((raw) => [raw, reason])),
);

/** Finish reasons of an answer that called a tool although none was offered. */
const toolReasons = new Set([
  'tool_calls',
  'tool_call',
  'TOOL_CALL',
  'function_call',
  'tool_use',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_FUNCTION_CALL',
]);

/** Words in the names of finish reasons that mean: the provider withholds the text, because of what it says. */
const blockingWords =
  /block(?:ed|list)?(?![a-z])|filter|safety|unsafe|prohibit|guard|armou?r|violat|moderat|polic(?:y|ies)|refus|sensitiv|toxic|harmful|jailbreak|injection|flagged|recitation|copyright|censor|abus/i;

/** Words that show a technical cause, whatever else the name says: `connection_refused` blocks no text. */
const technicalWords =
  /connect|network|socket|proxy|protocol|schema|grammar|json|tool|function|quota|limit|capacity|timeout|auth|memory|cache|schedul|preempt/i;

/**
 * What a finish reason means:
 * - a unified reason, for an answer that ended properly. An unknown name that means that the provider withholds the
 *   text is `content_filter`: a text that one provider refuses must not be sent to the next one;
 * - `tool`: the answer called a tool;
 * - `unknown`: any other name. The answer may not be complete, and a reason is never invented.
 */
export function readFinishReason(raw: string): FinishReason | 'tool' | 'unknown' {
  const reason = unified.get(raw);
  if (reason !== undefined) return reason;
  if (toolReasons.has(raw)) return 'tool';
  return blockingWords.test(raw) && !technicalWords.test(raw) ? 'content_filter' : 'unknown';
}
