import {
  forward,
  keepOnly,
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
  noDecoding,
  noLogprobs,
  noTools,
  outputCap,
  outputCapWhy,
  reasoningEffort,
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
  string,
  stringMap,
} from './value-type.ts';

/** A 64-bit integer, as other languages send it. JavaScript rounds numbers that large; the seed is only stripped. */
const int64 = integer(-(2 ** 63), 2 ** 63);

/** How many stop sequences a request may have, as at OpenAI, and how long each may be, in UTF-16 code units. */
export const maxStops = 4;
export const maxStopChars = 1_024;

const oneChoice = 'One answer is generated per request.';

/** Every top-level field of a Chat Completions request. */
export const chatParameters: readonly Rule[] = [
  ...sharedParameters,
  ...rules(
    ['messages', arrayOf('messages'), required, 'the whole conversation'],
    ['stream_options', object, forward, 'include_usage shows the usage chunk; dropped without `stream`'],
    ['max_tokens max_completion_tokens', outputCap, forward, outputCapWhy],
    ['n', integer(1, 128), onlyNeutral([1], oneChoice), 'one answer per request'],
    [
      'stop',
      either(
        string,
        arrayOf('strings', { items: { type: 'string', maxLength: maxStopChars }, maxItems: maxStops }),
      ),
      forward,
      `up to ${maxStops} stop sequences: the answer ends before the first of them; \`""\` and \`[]\` are none; \`unsupported_parameter\` if no upstream of the model takes them`,
    ],
    ['seed', int64, strip, 'best effort by definition'],
    ['logit_bias', object, refusedUnless([{}], noDecoding), 'would change the text'],
    ['logprobs', boolean, refusedUnless([false], noLogprobs), 'no log probabilities'],
    ['response_format', object, forward, 'only the text format'],
    ['functions', array, refusedUnless([[]], noTools), 'the older name of tools'],
    [
      'function_call',
      either(string, object),
      refusedUnless(['none', 'auto'], noTools),
      'means nothing without functions',
    ],
    ['modalities', array, onlyNeutral([['text']], textOnly), 'text only'],
    ['audio prediction web_search_options', object, refused(textOnly), 'text only'],
    ['metadata', stringMap, strip, 'nothing is stored'],
    ['user safety_identifier', string, strip, 'never passed on'],
    [
      'prompt_cache_key',
      string,
      keepOnly,
      'never passed on; requests with the same one may go to the same server',
    ],
    ['reasoning_effort', reasoningEffort, strip, 'added by apps that guess from a model’s name'],
    ['verbosity', verbosity, strip, 'added by apps that guess from a model’s name'],
    ['reasoning', anything, strip, 'added by apps that guess from a model’s name'],
  ),
  ...extensionParameters,
  ...misplacedRules(
    'a field of the other endpoint',
    [
      'input text include truncation background conversation',
      'It belongs to POST /v1/responses; this endpoint takes the conversation in messages.',
    ],
    ['max_output_tokens', 'The name at this endpoint is max_completion_tokens.'],
  ),
  ...misplacedRules('a field of an older endpoint', [
    'prompt',
    'This endpoint takes the conversation in messages.',
  ]),
  ...misplacedRules('the system message of other APIs', [
    'instructions system',
    'Send it as the first of the messages, with the role system.',
  ]),
  ...misplacedRules('an option of streams', ['include_usage', 'Put it into stream_options.']),
];

/** The fields of `stream_options`. */
export const streamOptionFields: readonly Rule[] = rules(
  ['include_usage', boolean, forward, 'shows the usage chunk'],
  ['include_obfuscation continuous_usage_stats', boolean, strip, 'not a part of this stream'],
);
