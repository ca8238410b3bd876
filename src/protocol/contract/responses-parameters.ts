import {
  echo,
  forward,
  misplaced,
  onlyNeutral,
  refused,
  refusedUnless,
  required,
  rules,
  strip,
} from './rule.ts';
import type { Rule } from './rule.ts';
import {
  extensionParameters,
  noState,
  outputCap,
  outputCapWhy,
  sharedParameters,
  textOnly,
  verbosity,
} from './shared-parameters.ts';
import {
  anything,
  array,
  arrayOf,
  boolean,
  either,
  integer,
  object,
  oneOf,
  string,
  stringMap,
} from './value-type.ts';

/** Every top-level field of a Responses request. */
export const responsesParameters: readonly Rule[] = [
  ...sharedParameters,
  ...rules('input', either(string, arrayOf('messages')), required, 'the whole conversation'),
  ...rules('instructions', string, forward, 'becomes the leading system message'),
  ...rules('max_output_tokens', outputCap, forward, outputCapWhy),
  ...rules('text', object, forward, 'only the text format; verbosity is dropped'),
  ...rules('include', array, strip, 'what the service has not is dropped, or refused by name'),
  ...rules('stream_options', object, forward, 'its known options are dropped'),
  ...rules('reasoning', object, strip, 'not a part of this service'),
  ...rules('max_tool_calls', integer(0), strip, 'means nothing without tools'),
  ...rules('conversation', anything, refused(noState), 'no conversation is kept'),
  ...rules(
    'prompt',
    anything,
    refused('No prompts are stored: send the text itself in input.'),
    'no prompts are stored',
  ),
  ...rules(
    'background',
    boolean,
    onlyNeutral([false], 'Background mode is not available: the request itself returns the answer.'),
    'nothing runs later',
  ),
  ...rules('truncation', oneOf('disabled', 'auto'), strip, 'the history is never cut'),
  ...rules('metadata', stringMap, echo, 'repeated, not stored'),
  ...rules('user safety_identifier', string, echo, 'repeated, never passed on'),
  ...rules(
    'prompt_cache_key',
    string,
    echo,
    'repeated, never passed on; requests with the same one may go to the same server',
  ),
  ...rules(
    'context_management',
    either(array, object),
    refusedUnless([[], {}], noState),
    'no stored context',
  ),
  ...rules(
    'image access_programs',
    object,
    refusedUnless([{}, { context_compression: 'auto' }], textOnly),
    'the default is dropped',
  ),
  ...extensionParameters,
  ...rules(
    'messages stop n seed logit_bias logprobs modalities functions function_call audio prediction web_search_options',
    anything,
    misplaced('It belongs to POST /v1/chat/completions; this endpoint takes the conversation in input.'),
    'a field of the other endpoint',
  ),
  ...rules(
    'max_tokens max_completion_tokens',
    anything,
    misplaced('The name at this endpoint is max_output_tokens.'),
    'a field of the other endpoint',
  ),
  ...rules(
    'response_format',
    anything,
    misplaced('This endpoint takes it as text.format.'),
    'a field of the other endpoint',
  ),
  ...rules(
    'reasoning_effort',
    anything,
    misplaced('This endpoint takes it as reasoning.effort.'),
    'a field of the other endpoint',
  ),
  ...rules(
    'verbosity',
    anything,
    misplaced('This endpoint takes it as text.verbosity.'),
    'a field of the other endpoint',
  ),
  ...rules('system', anything, misplaced('Send it as instructions.'), 'the system message of other APIs'),
  ...rules(
    'include_usage',
    anything,
    misplaced('The last event has the usage anyway: leave this parameter out.'),
    'an option of streams',
  ),
];

/** The fields of `text`. */
export const textFields: readonly Rule[] = [
  ...rules('format', object, forward, 'only the text format'),
  ...rules('verbosity', verbosity, strip, 'added by agent SDKs for some models'),
];

/** The fields of `stream_options`: usage is in the last event anyway. */
export const responsesStreamOptionFields: readonly Rule[] = [
  ...rules(
    'include_usage include_obfuscation continuous_usage_stats',
    boolean,
    strip,
    'not a part of this stream',
  ),
];

/** Entries of `include` for details of content that this service never returns: dropping them loses nothing. */
export const neutralInclude =
  /^(reasoning\.encrypted_content|message\.input_image\.image_url|[a-z_]+_call(_output)?\..+)$/;

/** Entries of `include` that are refused, because the client would miss the data. */
export const refusedIncludes: ReadonlySet<string> = new Set(['message.output_text.logprobs']);
