import { upstream as schema } from '../../../config/schema/upstream-schema.ts';
import { chosenName } from '../../../config/schema/values.ts';
import { hasKey, upstreamAt } from '../../init/find-upstreams.ts';
import {
  localServers,
  openaiByResponses,
  providers,
  referenceTo,
  settingsBesideAddress,
} from '../../init/known-upstreams.ts';
import { textOf } from './read-litellm.ts';
import type { Deployment } from './read-litellm.ts';
import { withReferences } from './references.ts';

/** The settings of an upstream, as they are written into a config file. */
export interface ImportedLine {
  readonly url: string;
  readonly [setting: string]: unknown;
}

/** Where a deployment is served: an upstream, the name that it gets if no other one has it, and the model's name there. */
export interface Target {
  readonly name: string;
  readonly line: ImportedLine;
  readonly model: string;
  /** The name that the list of prices may have for the model, where the address does not say it. */
  readonly listName?: string;
}

/** Finds the target of a deployment by its provider and the rest of the model's name; or why it has no counterpart. */
type Find = (deployment: Deployment, model: string) => Target | string;

const known = new Map(
  [...providers, ...localServers, openaiByResponses].map((upstream) => [upstream.name, upstream]),
);

/** Providers that have other names in LiteLLM. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ['together_ai', 'together'],
  ['fireworks_ai', 'fireworks'],
  ['cohere_chat', 'cohere'],
  ['dashscope', 'qwen'],
  ['hosted_vllm', 'vllm'],
  ['lm_studio', 'lm-studio'],
  ['llamafile', 'llama.cpp'],
]);

/** Providers of which there is more to know than a name, by LiteLLM's names. */
const finders: Readonly<Record<string, Find>> = {
  openai: findOpenai,
  custom_openai: findOpenai,
  openai_like: findOpenai,
  litellm_proxy: findAnyServer('LITELLM_PROXY_API_BASE'),
  anthropic: at('anthropic', '/v1'),
  perplexity: (deployment, model) => {
    const named = `perplexity/${model}`;
    return Object.assign({ listName: named }, at('perplexity')(deployment, named));
  },
  nvidia_nim: at('nvidia', '', 'NVIDIA_NIM_API_KEY'),
  ollama: at('ollama', '/v1'),
  ollama_chat: at('ollama', '/v1'),
  huggingface: findHuggingFace,
  azure: findAzure,
  azure_ai: findAzure,
  bedrock: findBedrock,
  vertex_ai: findVertex,
  databricks: findDatabricks,
  snowflake: findSnowflake,
};

/** Names of models without a provider in front, of which LiteLLM knows the provider. */
const bareNames: readonly (readonly [RegExp, string])[] = [
  [/^(?:gpt-|chatgpt-|o\d|ft:gpt-)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^command-/, 'cohere'],
  [/^gemini-/, 'vertex_ai'],
];

/** What is not text, by the mode of a model and by the usual names. */
const otherKinds: readonly (readonly [mode: RegExp, name: RegExp, text: string])[] = [
  [/embedding/, /embed|(?:^|[-/])bge-/i, 'embeddings are no text: passthrough has their path'],
  [/rerank/, /rerank/i, 'reranking is no text: passthrough has its path'],
  [
    /image|video/,
    /dall-e|(?:^|[-/])(?:gpt-image|imagen|flux|sora|veo)|-image(?:-|$)/i,
    'pictures are not served',
  ],
  [/audio|realtime/, /whisper|transcri|realtime|-audio(?:-|$)|(?:^|[-/])tts(?:-|$)/i, 'sound is not served'],
  [/moderation/, /moderation/i, 'moderation is not served'],
];

/** Where a deployment is served; or why it has no counterpart, in words that quote no value but names of providers. */
export function findTarget(deployment: Deployment): Target | string {
  const [provider, model] = splitModel(deployment);
  const mode = textOf(deployment.info, 'mode');
  const other = otherThanText(model, mode);
  if (other !== null) return other;
  if (provider === null) return 'no provider stands in front of the name of the model, such as openai/';
  const name = otherNames.get(provider) ?? provider;
  const find = Object.hasOwn(finders, provider) ? finders[provider] : known.has(name) ? at(name) : undefined;
  if (find === undefined)
    return `there is no tested line for ${provider}: add an upstream with its address, if it speaks a protocol that is spoken here`;
  const target = findFault('api_base', addressOf(deployment)) ?? find(deployment, withReferences(model));
  if (typeof target === 'string') return target;
  const { error } = chosenName.safeParse(target.model);
  return error?.issues[0]?.message ?? findFault('its address', target.line.url, target.line) ?? target;
}

/** Why a model does not answer with text, by its mode, or else by its name; `null` if it may. */
export function otherThanText(model: string, mode: string | null): string | null {
  const kind = otherKinds.find(([ofMode, ofName]) =>
    mode === null ? ofName.test(model) : ofMode.test(mode),
  );
  return kind === undefined ? null : kind[2];
}

/** Why an address can't be that of an upstream; `null` if it can. It is not quoted: it may hold a key, as may defaults in it. */
function findFault(setting: string, address: string | null, line: object = {}): string | null {
  if (address === null) return null;
  const filled = address.replaceAll(
    /\$\{\w+(?::-([^}]*))?\}/g,
    (_reference, usual: string | undefined, start: number) =>
      usual || (start === 0 ? 'http://address.invalid' : '1'),
  );
  const url = URL.parse(filled);
  if (url !== null && hasKey(url))
    return `${setting} has a key in its query or path: put the whole address into a variable`;
  const { error } = schema.safeParse({ ...line, url: filled });
  return error === undefined ? null : `${setting}: ${error.issues.map(({ message }) => message).join(', ')}`;
}

/** The provider of a deployment and its name of the model; the provider is `null` if none is named or known. */
function splitModel({ model, params }: Deployment): readonly [provider: string | null, model: string] {
  const named = textOf(params, 'custom_llm_provider');
  const slash = model.indexOf('/');
  const [front, rest] = [model.slice(0, slash), model.slice(slash + 1)];
  if (named !== null) return [named, slash > 0 && front === named ? rest : model];
  if (slash > 0) return [front, rest];
  return [bareNames.find(([name]) => name.test(model))?.[1] ?? null, model];
}

/** The address that a deployment has itself, as it is written into a config, without an endpoint; `null` for none. */
function addressOf({ params }: Deployment): string | null {
  const text = textOf(params, 'api_base') ?? textOf(params, 'base_url');
  if (text === null) return null;
  return withReferences(text).replace(
    /(?:\/chat\/completions|\/completions|\/messages|\/responses)?\/*$/,
    '',
  );
}

/** Finds a provider that is known, or a server of one's own; `path` is what LiteLLM adds to an address of its own. */
function at(name: string, path = '', variable: string | null = null): (...given: Parameters<Find>) => Target {
  return (deployment, model) => {
    const line = known.get(name)?.line ?? { url: '' };
    const address = addressOf(deployment);
    const url = address === null ? line.url : /\/v\d\w*$/.test(address) ? address : address + path;
    const key = variable === null ? {} : { apiKey: referenceTo(variable) };
    return { name, line: { ...line, ...key, url }, model };
  };
}

/** Whether LiteLLM calls a model by the Responses protocol, which some models have alone. */
function isByResponses({ info }: Deployment, model: string): boolean {
  return model.startsWith('responses/') || textOf(info, 'mode') === 'responses';
}

function findOpenai(deployment: Deployment, model: string): Target | string {
  const name = model.replace(/^responses\//, '');
  if (addressOf(deployment) !== null) return findAnyServer('')(deployment, name);
  return at(isByResponses(deployment, model) ? 'openai-responses' : 'openai')(deployment, name);
}

/** A server with Chat Completions, at its address or that in a variable: one of a provider has the settings of that. */
function findAnyServer(variable: string): Find {
  return (deployment, model) => {
    const url = addressOf(deployment) ?? referenceTo(variable);
    if (/^(?:https?:\/\/)?[^/]*\$\{/.test(url)) return { name: nameOfVariable(url), line: { url }, model };
    const { name, line } = upstreamAt({ url, variable: null, foundBy: 'api_base' });
    return { name: /^[\d.]+$|^\[/.test(name) ? 'server' : name, line, model };
  };
}

/** A name for the upstream whose host is in a variable: `VLLM_API_BASE` is that of `vllm`. */
function nameOfVariable(url: string): string {
  const [, variable = ''] = /\$\{(\w+)/.exec(url) ?? [];
  const words = variable.toLowerCase().split('_');
  return (
    words.filter((word) => !/^(?:api|base|url|host|endpoint|server|address)$/.test(word)).join('-') ||
    'upstream'
  );
}

function findHuggingFace(deployment: Deployment, model: string): Target | string {
  if (addressOf(deployment) !== null) return at('huggingface', '/v1')(deployment, model);
  const [provider, ...rest] = model.split('/');
  const name = rest.length > 1 ? `${rest.join('/')}:${provider}` : model;
  return at('huggingface')(deployment, name);
}

/** Azure's addresses at which all deployments of a resource are called in one way, without a version. */
const azureHosts = /\.(?:openai|cognitiveservices|services\.ai)\.azure\.(?:com|us)$/;

function findAzure(deployment: Deployment, model: string): Target | string {
  if (/claude/i.test(model))
    return 'Claude speaks a protocol of its own at Azure: there is no tested line for that';
  const address = addressOf(deployment) ?? referenceTo('AZURE_API_BASE');
  const url = URL.parse(address);
  if (url?.hostname.endsWith('.models.ai.azure.com') === true) return findAnyServer('')(deployment, model);
  const name = model.replace(/^(?:o_series|gpt5_series|responses)\//, '');
  const { params } = deployment;
  const version = withReferences(textOf(params, 'api_version') ?? '2025-04-01-preview');
  const base = address.replace(/\/openai(?:\/deployments.*)?$/, '');
  const isResource = base.startsWith('${') || (url !== null && azureHosts.test(url.hostname));
  const place = isResource
    ? `${url?.origin ?? base}/openai/v1`
    : `${base}/openai/deployments/${name}?api-version=${version}`;
  const isResponses = isByResponses(deployment, model);
  const { apiKey, authHeader } = settingsBesideAddress.azure;
  const settings = isResponses
    ? { apiKey, authHeader, dialects: ['responses'] }
    : settingsBesideAddress.azure;
  const line = { url: place, ...settings };
  return { name: isResponses ? 'azure-responses' : 'azure', line, model: name, listName: `azure/${name}` };
}

/** A setting of a deployment that is a part of its address, or the variable from which LiteLLM reads it. */
function partOf({ params }: Deployment, name: string, variable: string): string {
  return withReferences(textOf(params, name) ?? `os.environ/${variable}`);
}

function findBedrock(deployment: Deployment, model: string): Target | string {
  const [, name] = /(?:^|\/)(openai\.gpt-oss-.+)$/.exec(model) ?? [];
  if (name === undefined)
    return "of Bedrock's models only gpt-oss is served by a protocol that is spoken here: the others have Converse";
  const region = partOf(deployment, 'aws_region_name', 'AWS_REGION_NAME');
  const url = `https://bedrock-runtime.${region}.amazonaws.com/openai/v1`;
  return { name: 'bedrock', line: { url, ...settingsBesideAddress.bedrock }, model: name };
}

function findVertex(deployment: Deployment, model: string): Target | string {
  const isGoogles = /^(?:gemini|gemma|\$\{)/.test(model);
  if (/claude/i.test(model) || (!isGoogles && !model.includes('/')))
    return 'Vertex serves it by another protocol than its Chat Completions, which have Gemini and open models';
  const project = partOf(deployment, 'vertex_project', 'VERTEXAI_PROJECT');
  const location = partOf(deployment, 'vertex_location', 'VERTEXAI_LOCATION');
  const host = location === 'global' ? '' : `${location}-`;
  const url = `https://${host}aiplatform.googleapis.com/v1/projects/${project}/locations/${location}/endpoints/openapi`;
  const line = { url, ...settingsBesideAddress.vertex };
  const named = isGoogles ? `google/${model}` : model;
  return { name: 'vertex', line, model: named, listName: named };
}

function findDatabricks(deployment: Deployment, model: string): Target {
  const url = addressOf(deployment) ?? referenceTo('DATABRICKS_API_BASE');
  return { name: 'databricks', line: { url, ...settingsBesideAddress.databricks }, model };
}

function findSnowflake(deployment: Deployment, model: string): Target | string {
  const { origin = '' } = URL.parse(addressOf(deployment) ?? '') ?? {};
  const account = partOf(deployment, 'account_id', 'SNOWFLAKE_ACCOUNT_ID');
  const host = origin === '' ? `https://${account}.snowflakecomputing.com` : origin;
  const line = { url: `${host}/api/v2/cortex/v1`, ...settingsBesideAddress.snowflake };
  return { name: 'snowflake', line, model };
}
