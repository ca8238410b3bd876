import { forward, misplaced, onlyNeutral, refused, refusedUnless, required, rules, strip } from './rule.ts';
import type { FieldPolicy, Rule } from './rule.ts';
import { anything, array, boolean, either, integer, number, object, oneOf, string } from './value-type.ts';
import type { ValueType } from './value-type.ts';

export const noTools = 'Tools are not available: this service generates text only.';
export const noState = 'Send the full conversation as text with every request: this service stores none.';
export const textOnly = 'This service generates plain text only.';
export const noLogprobs = 'Log probabilities are not available.';
export const noDecoding = 'Decoding cannot be controlled.';
const noRouting = 'This service chooses the upstream itself.';

/** The output cap by which some clients say that they want none. */
const noCap = -1;

const cappedAtOne = integer(1);

/** An output cap in tokens. */
export const outputCap: ValueType = {
  ...cappedAtOne,
  check: (value, path) => (value === noCap ? null : cappedAtOne.check(value, path)),
  json: { anyOf: [cappedAtOne.json, { const: noCap }] },
};
export const outputCapWhy = 'a hint to the upstream, not a promise; `-1` is none, as llama.cpp has it';

/** The output cap of a checked field; `null` for none. */
export function readOutputCap(value: unknown): number | null {
  return value === undefined || value === noCap ? null : (value as number);
}

/** A sampling parameter, with the defaults that apps send by themselves and that express no choice of the user. */
function sampling(...defaults: readonly number[]): FieldPolicy {
  return { kind: 'sampling', defaults };
}

/** Request parameters that both endpoints treat alike. */
export const sharedParameters: readonly Rule[] = rules(
  ['model', string, required, 'which of the offered models'],
  ['stream', boolean, forward, 'whole answer or event stream'],
  [
    'temperature',
    number(0, 2),
    sampling(0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    'sampling is the model’s own',
  ],
  ['top_p', number(0, 1), sampling(1, 0.9, 0.95), 'sampling is the model’s own'],
  ['frequency_penalty presence_penalty', number(-2, 2), sampling(0), 'sampling is the model’s own'],
  ['tools', array, refusedUnless([[]], noTools), 'an empty list is sent by agent SDKs'],
  [
    'tool_choice',
    either(string, object),
    refusedUnless(['none', 'auto'], noTools),
    'means nothing without tools',
  ],
  ['parallel_tool_calls', boolean, strip, 'means nothing without tools'],
  ['store', boolean, strip, 'nothing is stored'],
  ['previous_response_id', anything, refused(noState), 'no conversation is kept'],
  ['top_logprobs', integer(0, 20), refusedUnless([0], noLogprobs), 'no log probabilities'],
  [
    'service_tier',
    string,
    onlyNeutral(['auto', 'default'], "Only 'auto' and 'default' are available."),
    'there is one tier',
  ],
  ['moderation', either(object, array), refusedUnless([{}, []], textOnly), 'not a part of the service'],
  ['prompt_cache_options prompt_cache_retention', anything, strip, 'caching is the upstream’s own'],
  ['client_metadata', anything, strip, 'a client’s note to itself'],
);

/** Parameters of other providers' APIs that apps send here, too. */
export const extensionParameters: readonly Rule[] = rules(
  ['top_k', integer(-1), refusedUnless([0, -1, 40], noDecoding), 'sampler; neutral values are dropped'],
  [
    'typical_p typical tfs tfs_z repetition_penalty repeat_penalty length_penalty',
    number(-100, 100),
    refusedUnless([1], noDecoding),
    'sampler; neutral values are dropped',
  ],
  [
    'min_p top_a mirostat mirostat_mode penalty_alpha no_repeat_ngram_size epsilon_cutoff eta_cutoff dynatemp_range xtc_probability xtc_threshold dry_multiplier min_tokens priority',
    number(-1_000_000, 1_000_000),
    refusedUnless([0], noDecoding),
    'sampler; neutral values are dropped',
  ],
  [
    'mirostat_tau mirostat_eta dry_base dry_allowed_length repeat_last_n dry_penalty_last_n dry_sequence_breakers',
    anything,
    strip,
    'a setting of a sampler that is off',
  ],
  ['do_sample', boolean, strip, 'sampling is the model’s own'],
  [
    'skip_special_tokens spaces_between_special_tokens add_generation_prompt',
    boolean,
    refusedUnless([true], noDecoding),
    'the default is dropped',
  ],
  [
    'ignore_eos use_beam_search continue_final_message echo include_stop_str_in_output safe_prompt',
    boolean,
    refusedUnless([false], noDecoding),
    'the default is dropped',
  ],
  ['best_of', integer(1), refusedUnless([1], noDecoding), 'the default is dropped'],
  ['stop_token_ids', array, refusedUnless([[]], noDecoding), 'the default is dropped'],
  [
    'thinking clear_thinking enable_thinking thinking_budget budget_tokens chat_template_kwargs include_reasoning reasoning_format reasoning_split think disable_reasoning',
    anything,
    strip,
    'added by apps that guess from a model’s name',
  ],
  ['random_seed', anything, strip, 'best effort by definition'],
  ['usage session_id request_id', anything, strip, 'a harmless extra'],
  [
    'cache_prompt timings_per_token return_progress id_slot keep_alive',
    anything,
    strip,
    'a hint to one kind of server',
  ],
  ['transforms', array, refusedUnless([[]], noRouting), 'the default is dropped'],
  ['provider models route plugins trace', anything, refused(noRouting), 'another gateway’s routing'],
  [
    'options num_ctx n_predict samplers grammar json_schema format prompt_mode guided_json guided_regex guided_choice guided_grammar structured_outputs logits_processors',
    anything,
    refused(noDecoding),
    'would change the text',
  ],
  [
    'documents venice_parameters search_context_size safety_model',
    anything,
    refused(textOnly),
    'another service’s feature',
  ],
  [
    'extra_body',
    anything,
    misplaced(
      'Put its fields directly into the request: SDKs merge extra_body into the request before they send it.',
    ),
    'a sign of an SDK used by hand',
  ],
);

export const reasoningEffort = oneOf('none', 'default', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max');
export const verbosity = oneOf('low', 'medium', 'high');

/** The fields of `response_format`, and of `text.format`. */
export const formatFields: readonly Rule[] = rules(
  ['type', string, onlyNeutral(['text'], "Only 'text' is available."), 'no structured output'],
  ['json_schema schema grammar', anything, refused(textOnly), 'no structured output'],
  ['strict name description', anything, strip, 'means nothing without a schema'],
);
