import { formatDuration } from '../../../shared/duration.ts';
import { headerName, upstreamHeaders } from '../../../config/schema/address-values.ts';
import { keyPrefix } from '../../../protocol/upstream/words/secret-shapes.ts';
import { isWritable } from '../../init/choose-models.ts';
import { hasKey } from '../../init/find-upstreams.ts';
import { referenceTo, variableOf } from '../../init/known-upstreams.ts';
import type { ImportedLine, Target } from './find-target.ts';
import type { Notes } from './notes.ts';
import { isOff, limitOf, numberOf, settingsOf, textOf } from './read-litellm.ts';
import type { Deployment } from './read-litellm.ts';
import { firstFree, variableIn, variableNamed, withReferences } from './references.ts';
import type { NameKey } from './references.ts';

/** Keys for servers that ask for none: examples write them because LiteLLM's client wants one. */
const placeholder =
  /^(?:none|null|empty|dummy|fake|any(?:thing)?|ignored?|unused|local|ollama|lm-?studio|vllm|x+|na|n\/a|sk-(?:none|dummy|fake|x+|1234|no-?key.*)|.*(?:fake|dummy)[-_]?key|no[-_ ]?(?:api[-_ ]?)?key.*|not[-_ ]?(?:needed|required|used).*)$/i;

/** Headers whose values are no secrets, and so are copied. */
const harmlessHeaders =
  /^(?:(?:http-)?referer|x-title|user-agent|accept-language|openai-(?:organization|project|beta)|anthropic-(?:beta|version)|editor-(?:plugin-)?version|copilot-integration-id|x-github-api-version)$/i;

/** The longest time for a whole call, where none is set, in milliseconds; and the longest of any timeout. */
const usualTotalMs = 600_000;
const maxTimeoutMs = 2_000_000_000;

/** Limits of a model at an upstream, by LiteLLM's names and ours. */
const limitNames = [
  ['max_parallel_requests', 'maxInFlight'],
  ['rpm', 'requestsPerMinute'],
  ['tpm', 'tokensPerMinute'],
] as const;

/** An upstream of the config, while deployments are added to it. */
interface Upstream {
  /** What its name begins with. */
  readonly name: string;
  readonly line: ImportedLine;
  /** Its own limits, which a pattern has for all its models, and those of single models. */
  readonly ownLimits: Record<string, number>;
  readonly limits: Map<string, Record<string, number>>;
  /** The longest silence within a call, in milliseconds; 0 for the usual one. */
  silenceMs: number;
}

/** The upstreams of a config: deployments with the same address, key and headers share one. */
export class Upstreams {
  readonly #byIdentity = new Map<string, Upstream>();
  readonly #variableFor: NameKey;
  readonly #notes: Notes;
  readonly #seconds: number | null;

  /** `seconds` is the timeout of deployments without one. */
  constructor(variableFor: NameKey, notes: Notes, seconds: number | null) {
    this.#variableFor = variableFor;
    this.#notes = notes;
    this.#seconds = seconds;
  }

  /** Adds the upstream of a target, with what its deployment sets for it. */
  add(target: Target, deployment: Deployment): Target {
    const { name, line: found, model } = target;
    const line = this.#withKey(name, found, deployment);
    const identity = JSON.stringify(line);
    const known = this.#byIdentity.get(identity);
    const upstream = known ?? { name, line, ownLimits: {}, limits: new Map(), silenceMs: 0 };
    this.#byIdentity.set(identity, upstream);
    const { params } = deployment;
    const silence = numberOf(params, 'stream_timeout') ?? numberOf(params, 'timeout') ?? this.#seconds ?? 0;
    upstream.silenceMs = Math.max(upstream.silenceMs, Math.min(Math.ceil(silence * 1_000), maxTimeoutMs));
    const isPattern = model.includes('*');
    const limits = isPattern ? upstream.ownLimits : (upstream.limits.get(model) ?? {});
    for (const [litellms, ours] of limitNames) {
      const limit = limitOf(params, litellms);
      if (limit !== null) limits[ours] = Math.max(limits[ours] ?? 0, limit);
    }
    if (!isPattern && Object.keys(limits).length > 0 && isWritable(model)) upstream.limits.set(model, limits);
    if (/^\$\{\w+\}\//.test(line.url))
      this.#notes.changed('api_base', 'the variable is to end without a slash', deployment.name);
    return Object.assign({}, target, { line: upstream.line });
  }

  /** The upstreams as they are written, by their names, and the names of those of targets that were added. */
  finish() {
    const lines = new Map<string, ImportedLine>();
    const names = new Map<ImportedLine, string>();
    for (const alike of Map.groupBy(this.#byIdentity.values(), ({ name }) => name).values())
      for (const [upstream, wished] of qualifiedNames(alike)) {
        const name = firstFree(wished, '-', (one) => lines.has(one));
        lines.set(name, settingsOfUpstream(upstream));
        names.set(upstream.line, name);
      }
    return { lines, nameOf: ({ name, line }: Target) => names.get(line) ?? name };
  }

  /** The settings of an upstream with the key and the headers of a deployment. */
  #withKey(name: string, line: ImportedLine, deployment: Deployment): ImportedLine {
    const { apiKey: usual, headers: usualHeaders, url, ...settings } = line;
    const apiKey = this.#keyOf(name, usual, deployment);
    const headers = this.#headersOf(usualHeaders as object | undefined, deployment);
    return {
      url,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...settings,
      ...(Object.keys(headers).length === 0 ? {} : { headers }),
    };
  }

  #keyOf(name: string, usual: unknown, { params, name: model, model: named }: Deployment): unknown {
    const written = textOf(params, 'api_key');
    if (written === null && usual === undefined && /^(?:custom_)?openai\//.test(named))
      this.#notes.changed(
        'api_key',
        'none is sent, where LiteLLM sends OPENAI_API_KEY to this server',
        model,
      );
    if (written === null) return usual;
    if (placeholder.test(written)) {
      this.#notes.changed('api_key', 'a placeholder, which is left out', model);
      return usual;
    }
    const wished = typeof usual === 'string' ? variableOf({ apiKey: usual }) : null;
    return this.#referTo('api_key', written, wished ?? variableNamed(`${name}_API_KEY`), model);
  }

  /** The headers of a deployment that a config can have, each name once, and with them those that its upstream usually has. */
  #headersOf(usual: object = {}, { params, name: model }: Deployment): object {
    const organization = params.get('organization');
    const given = [
      ['extra_headers', settingsOf(params.get('extra_headers'))],
      ['headers', settingsOf(params.get('headers'))],
      ['organization', new Map(organization && [['OpenAI-Organization', organization]])],
    ] as const;
    const headers = new Map<string, readonly string[]>();
    for (const [setting, settings] of given)
      for (const [name, value] of settings) {
        if (isOff(value)) continue;
        const text = textOf(settings, name) ?? '';
        const fault = headers.has(name.toLowerCase())
          ? 'expected each header only once'
          : headerFault(name, text);
        if (fault !== null) this.#notes.none(setting, `left out: ${fault}`, model);
        else headers.set(name.toLowerCase(), [name, this.#headerOf(setting, name, text, model)]);
      }
    for (const header of Object.entries(usual))
      if (!headers.has(header[0].toLowerCase())) headers.set(header[0].toLowerCase(), header);
    return Object.fromEntries(headers.values());
  }

  /** The value of a header: itself where that is harmless. */
  #headerOf(setting: string, name: string, text: string, model: string): string {
    if (!isHarmless(name, text)) return this.#referTo(setting, text, variableNamed(name), model);
    this.#notes.add('taken', setting, 'headers of the upstream', model);
    const variable = variableIn(text);
    // A default may be a key.
    return variable === null ? withReferences(text) : referenceTo(variable);
  }

  /** What stands for a value that may be a secret: the variable that it is, without its default, or one for its text. */
  #referTo(setting: string, text: string, wished: string, model: string): string {
    const variable = variableIn(text) ?? this.#variableFor(text, wished);
    const of = `${setting === 'api_key' ? 'apiKey' : 'headers'} of the upstream`;
    if (variableIn(text) !== null) this.#notes.add('taken', setting, of, model);
    else
      this.#notes.changed(
        setting,
        `in the file itself: not copied, put it into the variable ${variable}`,
        model,
      );
    return referenceTo(variable);
  }
}

function isHarmless(name: string, text: string): boolean {
  const url = URL.parse(text);
  const hasSecret = keyPrefix.test(text) || /^(?:Bearer|Basic)\s|:\/\/[^/]*@/i.test(text);
  return harmlessHeaders.test(name) && !hasSecret && (url === null || !hasKey(url));
}

/** Why a config can't have a header; `null` if it can. */
function headerFault(name: string, text: string): string | null {
  if (text === '') return 'expected a text';
  if (!isWritable(name) || keyPrefix.test(name)) return 'no header can have this name here';
  const { error } = headerName.safeParse(name);
  return (error ?? upstreamHeaders.safeParse({ name: text }).error)?.issues[0]?.message ?? null;
}

function settingsOfUpstream({ line, ownLimits, limits, silenceMs }: Upstream): ImportedLine {
  const silence = formatDuration(silenceMs);
  const total = silenceMs > usualTotalMs ? { total: silence } : {};
  return {
    ...line,
    ...(silenceMs === 0 ? {} : { timeouts: { firstByte: silence, idle: silence, ...total } }),
    ...ownLimits,
    ...(limits.size === 0 ? {} : { models: Object.fromEntries(limits) }),
  };
}

/** Upstreams of one name, each with the name that tells it from the others: by host, port, and the variable of its key. */
function qualifiedNames(alike: readonly Upstream[]): readonly (readonly [Upstream, string])[] {
  let names = alike.map(({ name }) => name);
  for (const qualify of qualifiers) {
    const parts = alike.map(qualify);
    if (new Set(names).size === alike.length) break;
    if (new Set(parts).size > 1)
      names = names.map((name, index) => [name, parts[index]].filter(Boolean).join('-'));
  }
  return alike.map((upstream, index) => [upstream, names[index] ?? upstream.name]);
}

const qualifiers: readonly ((upstream: Upstream) => string)[] = [
  ({ line, name }) => {
    const { hostname = '' } = URL.parse(line.url) ?? {};
    const [label = ''] = hostname.split('.');
    if (hostname === name || label === 'api' || label.includes('${')) return '';
    return /^\d+$/.test(label) ? hostname : label.replace(/-?aiplatform$/, '');
  },
  ({ line }) => URL.parse(line.url)?.port ?? '',
  ({ line: { apiKey }, name }) => {
    const variable = typeof apiKey === 'string' ? (variableOf({ apiKey }) ?? '') : '';
    const usual = new Set([...name.split(/[-.]/), 'api', 'key', 'token', 'secret', '']);
    return variable
      .toLowerCase()
      .split('_')
      .filter((word) => !usual.has(word))
      .join('-');
  },
];
