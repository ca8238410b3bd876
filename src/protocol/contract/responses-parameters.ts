import {
  echo,
  forward,
  misplacedRules,
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
  ...rules(
    ['input', either(string, arrayOf('messages')), required, 'the whole conversation'],
    ['instructions', string, forward, 'becomes the leading system message'],
    ['max_output_tokens', outputCap, forward, outputCapWhy],
    ['text', object, forward, 'only the text format; verbosity is dropped'],
    ['include', array, strip, 'what the service has not is dropped, or refused by name'],
    ['stream_options', object, forward, 'its known options are dropped'],
    ['reasoning', object, strip, 'not a part of this service'],
    ['max_tool_calls', integer(0), strip, 'means nothing without tools'],
    ['conversation', anything, refused(noState), 'no conversation is kept'],
    [
      'prompt',
      anything,
      refused('No prompts are stored: send the text itself in input.'),
      'no prompts are stored',
    ],
    [
      'background',
      boolean,
      onlyNeutral([false], 'Background mode is not available: the request itself returns the answer.'),
      'nothing runs later',
    ],
    ['truncation', oneOf('disabled', 'auto'), strip, 'the history is never cut'],
    ['metadata', stringMap, echo, 'repeated, not stored'],
    ['user safety_identifier', string, echo, 'repeated, never passed on'],
    [
      'prompt_cache_key',
      string,
      echo,
      'repeated, never passed on; requests with the same one may go to the same server',
    ],
    ['context_management', either(array, object), refusedUnless([[], {}], noState), 'no stored context'],
    [
      'image access_programs',
      object,
      refusedUnless([{}, { context_compression: 'auto' }], textOnly),
      'the default is dropped',
    ],
  ),
  ...extensionParameters,
  ...misplacedRules(
    'a field of the other endpoint',
    [
      'messages stop n seed logit_bias logprobs modalities functions function_call audio prediction web_search_options',
      'It belongs to POST /v1/chat/completions; this endpoint takes the conversation in input.',
    ],
    ['max_tokens max_completion_tokens', 'The name at this endpoint is max_output_tokens.'],
    ['response_format', 'This endpoint takes it as text.format.'],
    ['reasoning_effort', 'This endpoint takes it as reasoning.effort.'],
    ['verbosity', 'This endpoint takes it as text.verbosity.'],
  ),
  ...misplacedRules('the system message of other APIs', ['system', 'Send it as instructions.']),
  ...misplacedRules('an option of streams', [
    'include_usage',
    'The last event has the usage anyway: leave this parameter out.',
  ]),
];

/** The fields of `text`. */
export const textFields: readonly Rule[] = rules(
  ['format', object, forward, 'only the text format'],
  ['verbosity', verbosity, strip, 'added by agent SDKs for some models'],
);

/** The fields of `stream_options`: usage is in the last event anyway. */
export const responsesStreamOptionFields: readonly Rule[] = rules([
  'include_usage include_obfuscation continuous_usage_stats',
  boolean,
  strip,
  'not a part of this stream',
]);
