import { forward, refused, refusedUnless, required, rules, strip } from './rule.ts';
import type { Rule } from './rule.ts';
import { noTools, textOnly } from './shared-parameters.ts';
import { anything, array, arrayOf, either, object, string } from './value-type.ts';

const content = either(string, arrayOf('text parts'));

/** The fields of a chat message. */
export const messageFields: readonly Rule[] = [
  ...rules('role', string, required, 'system, developer, user or assistant'),
  ...rules('content', content, forward, 'text, or text parts; `null` of an assistant is an empty text'),
  ...rules('refusal', string, forward, 'stands in for a missing content'),
  ...rules('name', string, strip, 'never passed on'),
  ...rules('tool_calls', array, refusedUnless([[]], noTools), 'an empty list is replayed by SDKs'),
  ...rules('function_call', object, refused(noTools), 'no tools'),
  ...rules('tool_call_id', string, refused(noTools), 'no tools'),
  ...rules('audio', object, refused(textOnly), 'text only'),
  ...rules(
    'annotations reasoning_content reasoning reasoning_details reasoning_signature thinking_blocks provider_specific_fields prefix partial id created phase status metadata cache_control',
    anything,
    strip,
    'replayed by apps; carries no text of the conversation',
  ),
];

/** The fields of a message among the input items of a Responses request. */
export const inputMessageFields: readonly Rule[] = [
  ...rules('role', string, required, 'system, developer, user or assistant'),
  ...rules('content', content, required, 'text, or text parts'),
  ...rules('type', string, forward, 'message'),
  ...rules('id status phase', anything, strip, 'replayed by SDKs; nothing is stored'),
];

const textPartFields: readonly Rule[] = [
  ...rules('type', string, required, 'the kind of the part'),
  ...rules('text refusal', string, forward, 'the text'),
];

/** The fields of a content part of a chat message. */
export const contentPartFields: readonly Rule[] = [
  ...textPartFields,
  ...rules('cache_control prompt_cache_breakpoint', anything, strip, 'caching is the upstream’s own'),
  ...rules('annotations citations', anything, strip, 'replayed by apps; carries no text of the conversation'),
];

/** The fields of a content part of an input item. */
export const inputPartFields: readonly Rule[] = [
  ...textPartFields,
  ...rules('annotations logprobs', anything, strip, 'replayed by SDKs; carries no text of the conversation'),
  ...rules('cache_control prompt_cache_breakpoint', anything, strip, 'caching is the upstream’s own'),
];

/** How a content part is read: as text under `textKey`, or dropped. */
export type PartPolicy = { readonly textKey: 'text' | 'refusal' } | 'drop';

/** Content parts of a chat message. Any other type is refused. */
export const chatParts: Readonly<Record<string, PartPolicy>> = {
  text: { textKey: 'text' },
  refusal: { textKey: 'refusal' },
  thinking: 'drop',
  redacted_thinking: 'drop',
  reasoning: 'drop',
};

/** Content parts of a Responses message. Any other type is refused. */
export const responsesParts: Readonly<Record<string, PartPolicy>> = {
  input_text: { textKey: 'text' },
  output_text: { textKey: 'text' },
  text: { textKey: 'text' },
  refusal: { textKey: 'refusal' },
  reasoning_text: 'drop',
  summary_text: 'drop',
};

/** Input items that are dropped: thoughts of an earlier answer are not part of the conversation's text. */
export const droppedItems: ReadonlySet<string> = new Set(['reasoning']);

/** The names under which dropped parts and items are reported. */
export const droppedNames: readonly string[] = [
  ...droppedTypes(chatParts).map((type) => `messages[].content[].${type}`),
  ...droppedTypes(responsesParts).map((type) => `input[].content[].${type}`),
  ...[...droppedItems].map((type) => `input[].${type}`),
];

function droppedTypes(parts: Readonly<Record<string, PartPolicy>>): readonly string[] {
  return Object.keys(parts).filter((type) => parts[type] === 'drop');
}
