import { maxLimit } from '../../../shared/schema-values.ts';
import { isWritable } from '../../init/choose-models.ts';
import type { Settings } from './file-values.ts';
import type { Taken } from './find-price.ts';
import type { Target } from './find-target.ts';
import type { Notes, Result } from './notes.ts';
import { isOff, isOn, limitOf, numberOf, settingsOf, textOf } from './read-litellm.ts';
import { withReferences } from './references.ts';
import { policies } from './weigh-routes.ts';

/** What becomes of settings whose names match, if their values are right: any other is left out. */
interface Row {
  readonly names: RegExp;
  readonly result: Result;
  /** Empty where it is said when the setting is written. */
  readonly text: string;
  readonly form: Form | undefined;
}

/** What a value has to be, and whether it is. */
type Form = readonly [expected: string, fits: (settings: Settings, name: string, target?: Target) => boolean];

const forms: Readonly<Record<string, Form>> = {
  text: ['expected a text', (settings, name) => textOf(settings, name) !== null],
  names: ['expected names with values', (settings, name) => settings.get(name)?.kind === 'settings'],
  limit: [`expected a whole number from 1 to ${maxLimit}, of a model whose name a setting can have`, isLimit],
  seconds: ['expected a number above 0', (settings, name) => numberOf(settings, name) !== null],
  share: ['expected a number', (settings, name) => numberOf(settings, name, 0) !== null],
  part: ['the address of this provider has no such part', isPart],
  strategy: ['not known here', (settings, name) => policies.has(textOf(settings, name) ?? '')],
  switch: ['expected true or false', isOn],
};

function isLimit(settings: Settings, name: string, target?: Target): boolean {
  return limitOf(settings, name) !== null && isWritable(target?.model ?? '');
}

/** Whether an address has a part that a setting is, or the host of one that is an address. */
function isPart(settings: Settings, name: string, target?: Target): boolean {
  const text = withReferences(textOf(settings, name) ?? '');
  const [part] = /^(?:https?:\/\/[^/?:]*|\$\{\w+)/i.exec(text) ?? [text];
  return part !== '' && target?.line.url.toLowerCase().includes(part.toLowerCase()) === true;
}

const prices = 'input_cost_per_token output_cost_per_token cache_*_input_token_cost *_above_*k_tokens';

/** Settings of `litellm_params`: names, with * for any text; what becomes of them; how, or why; and the form of their values. */
const ofDeployments = readTable(`
model custom_llm_provider ${prices} | taken |
api_key organization | taken | | text
headers extra_headers | taken | | names
api_base base_url | taken | url of the upstream | part
weight order | taken | weight and place of the route | share
rpm | changed | requestsPerMinute of the model at its upstream, or of the whole upstream for a pattern: a limit, for which requests wait | limit
tpm | changed | tokensPerMinute of the model at its upstream, or of the whole upstream for a pattern: a limit, for which requests wait | limit
max_parallel_requests | changed | maxInFlight of the model at its upstream, or of the whole upstream for a pattern: further requests wait | limit
timeout stream_timeout | changed | firstByte and idle, the longest silences of a stream: an upstream has the longest of its models | seconds
max_retries num_retries | changed | each route is tried once, then the next one, until the first text
drop_params | changed | sampling parameters are left out of all requests
api_version | changed | addresses of Azure without a deployment have no version
vertex_project vertex_location aws_region_name account_id | taken | a part of the url | part
aws_* vertex_credentials azure_ad_token tenant_id client_* | changed | not copied: see apiKey of the upstream, which may be a command
*cost* | none | prices are per million tokens of text
temperature top_* max_tokens max_completion_tokens seed stop n *_penalty stream | none | requests have their own
tool* function* response_format *web_search* supports_* | none | text alone is served: no tools, no structured output
thinking reasoning_effort extra_body | none | nothing is added to the body of a request
tags tag_regex | none | which models a key may use is a setting of the key
cache* | none | answers are not cached; caches of providers work
litellm_credential_name | none | credential_list has none of this name: write what it has into the upstream
ssl_verify | none | tls of an upstream names the authority that signed its certificate
max_budget budget_duration | none | budgets are of keys and groups
*_limit | none | limits of clients are settings of their keys
`);

/** Settings of `model_info`. */
const ofInfo = readTable(`
${prices} | taken |
base_model | taken | the name in the list of prices, where it has that
mode | taken | whether it answers with text
* | none | descriptions of models are not kept
`);

/** Settings of the router, of the module and of the proxy; those that are taken of one section alone, with its name. */
const ofService = readTable(`
router_settings.fallbacks router_settings.default_fallbacks | taken |
litellm_settings.fallbacks litellm_settings.default_fallbacks | taken |
router_settings.model_group_alias | taken | | names
router_settings.routing_strategy | taken | weight or policy of models with several routes | strategy
router_settings.timeout router_settings.stream_timeout litellm_settings.request_timeout | changed | firstByte and idle of upstreams, the longest silences of a stream | seconds
num_retries max_retries *retry* | changed | each route is tried once, then the next one, until the first text
*allowed_fails* *cooldown* | changed | built in: an upstream that fails is tried last until it works again
litellm_settings.drop_params | changed | unknownFields: ignore; sampling parameters are left out of all requests | switch
context_window_fallbacks | none | a text that is too long is refused (context_length_exceeded), whichever model is next
content_policy_fallbacks | none | a text that a provider refuses is not sent to another one
enable_pre_call_checks | none | a text that is too long is refused by its provider
cach* redis* *_redis* enable_caching | none | answers are not cached, and nodes share what they need over PostgreSQL
*callback* *langfuse* *message_logging otel* | none | no text leaves the gateway: metrics, traces and webhooks have the figures
*guardrail* *moderation* | none | no text is inspected or changed
set_verbose *logs log_* debug *_verbose telemetry | none | the log has levels of its own: TEXTGATE_LOG
*budget* upperbound* key_generation* default_* max_*_budget | none | budgets and limits are of keys and groups
ssl_* force_ipv4 aiohttp* | none | certificates and proxies: tls and proxy of an upstream
*master_key *salt_key | none | not carried over: operators have the admin token, clients keys of this gateway
*database* *_db *_db_* proxy_batch* | none | not carried over: storage.url names the database, by default a file of SQLite
alert* *slack* | none | alerts: rules over metrics, and webhooks
*health_check* | none | requests show what works; probe of an upstream asks in between
*max_parallel_requests | none | limits.concurrency is of each key, maxInFlight of each upstream
pass_through* | none | passthrough has paths of an upstream
completion_model | none | a request names its model
*spend* | none | each request has a record without its text; records.keep bounds their age
*jwt* *auth* ui* *sso* *_routes allowed_ips enforce_* | none | clients present keys, and operators the admin token
*mcp* | none | text alone is served: no tools
`);

/** Sections of the file that are not read. */
const ofFile = readTable(`
model_list credential_list | taken |
environment_variables | none | not carried over: set the variables where the gateway runs
*guardrail* policies | none | no text is inspected or changed
*mcp* *tool* agents vector_store* *search* | none | text alone is served: no tools
*callback* | none | no text leaves the gateway: metrics, traces and webhooks have the figures
*files* *finetun* assistant* *batch* prompts | none | files, prompts and stored conversations are not kept
`);

function readTable(lines: string): readonly Row[] {
  return lines
    .trim()
    .split('\n')
    .map((line) => {
      const [names = '', result = '', text = '', form = ''] = line.split('|').map((cell) => cell.trim());
      const patterns = names.split(' ').map((name) => name.replaceAll('*', '.*'));
      const pattern = new RegExp(`^(?:${patterns.join('|')})$`);
      return { names: pattern, result: result as Result, text, form: forms[form] };
    });
}

/** Says what becomes of the settings of a deployment that is taken over. */
export function noteDeployment(taken: Taken, notes: Notes): void {
  noteAll(taken.deployment.params, ofDeployments, '', notes, taken);
  noteAll(taken.deployment.info, ofInfo, 'model_info.', notes, taken);
}

/** Says what becomes of the settings beside the models. */
export function noteSettings(root: Settings, notes: Notes): void {
  for (const [section, value] of root)
    if (/^(?:litellm|router|general)_settings$/.test(section))
      noteAll(settingsOf(value), ofService, `${section}.`, notes);
    else noteAll(new Map([[section, value]]), ofFile, '', notes);
}

/** Notes settings that are on: of one that is off, nothing is missed. */
function noteAll(
  settings: Settings,
  rows: readonly Row[],
  before: string,
  notes: Notes,
  taken?: Taken,
): void {
  for (const [name, value] of settings) {
    if (isOff(value)) continue;
    const row = rows.find(({ names }) => names.test(name) || names.test(before + name));
    const { result, text, form: [expected, fits] = ['', () => true] } = row ?? unknown;
    const isTaken = fits(settings, name, taken?.target);
    if (!isTaken) notes.none(before + name, `left out: ${expected}`, taken?.deployment.name);
    else if (text !== '') notes.add(result, before + name, text, taken?.deployment.name);
  }
}

const unknown: Omit<Row, 'names'> = { result: 'none', text: 'not known here', form: undefined };
