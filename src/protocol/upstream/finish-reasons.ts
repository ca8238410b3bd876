import type { FinishReason } from '../text.ts';

/** The finish reasons of providers, unified. Any other one fails the answer; a reason is never invented. */
export const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['STOP', 'stop'],
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['COMPLETE', 'stop'],
  ['length', 'length'],
  ['model_length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['MAX_TOKENS', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['content_filter', 'content_filter'],
  ['safety', 'content_filter'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['refusal', 'content_filter'],
]);
