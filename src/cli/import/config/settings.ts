import type { Notes, Result } from './notes.ts';
import { settingsOf } from './read-litellm.ts';
import type { Deployment } from './read-litellm.ts';
import type { Settings } from './file-values.ts';

/** What becomes of settings with certain names. */
type Row = readonly [names: RegExp, result: Result, text: string];

const usedAsGiven: Row = [
  /^(?:model|model_name|litellm_credential_name|custom_llm_provider|mode)$/,
  'taken',
  '',
];

const prices: readonly Row[] = [
  [/^(?:input|output)_cost_per_token$/, 'taken', 'price, in USD per million tokens'],
  [/^cache_(?:read|creation)_input_token_cost$/, 'taken', 'price.cachedInput, price.cacheWrite'],
  [/_cost(?:_per_token)?_above_\d+k_tokens$/, 'taken', 'price.above'],
  [/cost/, 'none', 'prices are per million tokens of text'],
];

/** Settings of `litellm_params` and of `model_info`. */
const ofModels: readonly Row[] = [
  usedAsGiven,
  [/^(?:api_base|base_url)$/, 'taken', 'url of the upstream'],
  [/^api_key$/, 'taken', 'apiKey of the upstream'],
  [/^api_version$/, 'changed', "Azure's addresses without deployments need no version; others keep it"],
  [/^(?:organization|extra_headers|headers)$/, 'taken', 'headers of the upstream'],
  [/^rpm$/, 'changed', 'requestsPerMinute of the model there: it also holds, and requests wait for it'],
  [/^tpm$/, 'changed', 'tokensPerMinute of the model there: it also holds, and requests wait for it'],
  [/^max_parallel_requests$/, 'changed', 'maxInFlight of the model there: requests wait for it'],
  [/^(?:weight|order)$/, 'taken', 'weight and place of the route'],
  [
    /^(?:timeout|stream_timeout)$/,
    'changed',
    'firstByte and idle of the upstream, the longest of its models',
  ],
  [/^(?:max_retries|num_retries)$/, 'changed', 'each route is tried once, then the next one'],
  [/^drop_params$/, 'changed', 'sampling parameters are always left out; unknown fields by compatibility'],
  ...prices,
  [/^base_model$/, 'taken', 'the name in the list of prices, where it is there'],
  [
    /^(?:aws|vertex|region|azure|watsonx)_/,
    'changed',
    'what the address has of it; keys: see the line of the upstream',
  ],
  [/^(?:tenant_id|client_id|client_secret)$/, 'none', 'tokens of Entra: apiKey: { command: … } prints one'],
  [
    /^(?:temperature|top_p|top_k|max_tokens|max_completion_tokens|seed|stop|n|presence_penalty|frequency_penalty|stream)$/,
    'none',
    'requests have their own; sampling parameters are left out of all',
  ],
  [
    /^(?:tools?|tool_choice|functions?|response_format|web_search_options|supports_function_calling)$/,
    'none',
    'text alone is served: no tools, no structured output',
  ],
  [/^(?:thinking|reasoning_effort|extra_body)$/, 'none', 'nothing is added to the body of a request'],
  [
    /^(?:tags|tag_regex|access_groups|team_id)$/,
    'none',
    'which models a key may use is a setting of the key',
  ],
  [
    /^(?:id|description|max_(?:input_|output_)?tokens|supports_.*|supported_.*|created_.*|updated_.*)$/,
    'none',
    'descriptions of models are not kept',
  ],
  [/^cache|cache_control/, 'none', "answers are not cached; providers' own caches work"],
  [/^(?:max_budget|budget_duration)$/, 'none', 'budgets are of keys and groups'],
];

/** Settings of the router and of the module, which LiteLLM takes in either section. */
const ofService: readonly Row[] = [
  [/^(?:fallbacks|default_fallbacks)$/, 'taken', 'routes behind those of the model'],
  [
    /^context_window_fallbacks$/,
    'none',
    'a text that is too long is refused (context_length_exceeded), and not sent to another model',
  ],
  [/^content_policy_fallbacks$/, 'none', 'a text that a provider refuses is not sent to another one'],
  [
    /^(?:request_timeout|timeout|stream_timeout)$/,
    'changed',
    'firstByte and idle of upstreams: silence within a call; a whole call has total',
  ],
  [
    /^(?:num_retries|max_retries|retry_policy|model_group_retry_policy|retry_after)$/,
    'changed',
    'each route is tried once, then the next one, until the first text',
  ],
  [
    /^(?:allowed_fails|cooldown_time|disable_cooldowns|allowed_fails_policy)$/,
    'changed',
    'built in: an upstream that fails is tried last until it works again',
  ],
  [
    /^drop_params$/,
    'changed',
    'compatibility.unknownFields: ignore; sampling parameters are always left out',
  ],
  [/^model_group_alias$/, 'taken', 'a model of its own with the same routes'],
  [/^routing_strategy$/, 'taken', 'weight or policy of the models'],
  [
    /^(?:redis|cache|caching|enable_caching)/,
    'none',
    'answers are not cached, and nodes share what they need over PostgreSQL',
  ],
  [
    /callback|langfuse|^turn_off_message_logging|^redact_|^otel/,
    'none',
    'no text leaves the gateway: metrics, traces and webhooks have the figures',
  ],
  [/guardrail|moderation|presidio/, 'none', 'no text is inspected or changed'],
  [
    /^(?:set_verbose|json_logs|log_raw|suppress_debug_info|telemetry|debug)/,
    'none',
    'the log has levels of its own: TEXTGATE_LOG',
  ],
  [
    /^(?:max_budget|budget_duration|max_.*budget|default_(?:team|internal_user)|upperbound|key_generation|.*_budget)/,
    'none',
    'budgets and limits are of keys and groups',
  ],
  [/^ssl_|^force_ipv4|^aiohttp|proxy/, 'none', 'certificates and proxies: tls and proxy of an upstream'],
  [/^enable_pre_call_checks$/, 'none', 'a text that is too long is refused by its provider'],
];

/** Settings of the proxy itself. */
const ofProxy: readonly Row[] = [
  [/key$|^salt/, 'none', 'not carried over: operators have the admin token, clients keys of the gateway'],
  [
    /^database|^store_model_in_db|^allow_requests_on_db|_db_|^use_redis/,
    'none',
    'not carried over: the database is storage.url, by default a file of SQLite',
  ],
  [/^alert|^slack/, 'none', 'alerts: metrics with rules, and webhooks'],
  [/^(?:background_)?health_check/, 'none', 'requests show what works; probe of an upstream asks in between'],
  [/max_parallel_requests$/, 'none', 'limits.concurrency is of each key, maxInFlight of each upstream'],
  [/^pass_through/, 'none', 'passthrough has paths of an upstream'],
  [/^completion_model$/, 'none', 'a request names its model'],
  [
    /spend_logs|^disable_/,
    'none',
    'each request has a record without its text; records.keep bounds their age',
  ],
  [
    /jwt|auth|ui_|sso|allowed_routes|public_routes|allowed_ips/,
    'none',
    'clients present keys, and operators the admin token',
  ],
  [/^proxy_budget/, 'none', 'budgets are of keys and groups'],
];

/** Sections of the file, and what becomes of their settings; `null` for what is read elsewhere. */
const sections: Readonly<Record<string, readonly Row[] | null>> = {
  model_list: null,
  credential_list: null,
  litellm_settings: ofService,
  router_settings: ofService,
  general_settings: [...ofProxy, ...ofService],
};

const ofFile: readonly Row[] = [
  [/^environment_variables$/, 'none', 'not carried over: set the variables where the gateway runs'],
  [/guardrail|policies/, 'none', 'no text is inspected or changed'],
  [/mcp|tool|agent|vector_store|search/, 'none', 'text alone is served: no tools'],
  [/callback/, 'none', 'no text leaves the gateway: metrics, traces and webhooks have the figures'],
  [/files|finetune|assistant|batch|prompts/, 'none', 'files, prompts and stored conversations are not kept'],
];

const unknown: Row = [/^/, 'none', 'not known here'];

/** Says what becomes of the settings of a deployment that is taken over. */
export function noteDeployment({ name, params, info }: Deployment, notes: Notes): void {
  noteAll(params, ofModels, '', notes, name);
  noteAll(info, ofModels, 'model_info.', notes, name);
}

/** Says what becomes of the settings beside the models. */
export function noteSettings(root: Settings, notes: Notes): void {
  for (const [section, value] of root) {
    const rows = Object.hasOwn(sections, section) ? sections[section] : undefined;
    if (rows === undefined) noteAll(new Map([[section, value]]), ofFile, '', notes);
    else if (rows !== null) noteAll(settingsOf(value), rows, `${section}.`, notes);
  }
}

function noteAll(
  settings: Settings,
  rows: readonly Row[],
  before: string,
  notes: Notes,
  model?: string,
): void {
  for (const name of settings.keys()) {
    const [, result, text] = rows.find(([names]) => names.test(name)) ?? unknown;
    if (text !== '') notes.add(result, before + name, text, model);
  }
}
