import { formatDuration } from '../../../shared/duration.ts';
import { secretNames } from '../../init/find-upstreams.ts';
import { referenceTo, variableOf } from '../../init/known-upstreams.ts';
import type { ImportedLine, Target } from './find-target.ts';
import type { Notes } from './notes.ts';
import { numberOf, settingsOf, textOf } from './read-litellm.ts';
import type { Deployment } from './read-litellm.ts';
import { firstFree, variableIn, variableNamed, withReferences } from './references.ts';
import type { KeyNames } from './references.ts';

/** Keys for servers that ask for none: examples write them because LiteLLM's client wants one. */
const placeholder =
  /^(?:none|null|empty|dummy|fake|any(?:thing)?|ignored?|unused|local|ollama|lm-?studio|vllm|x+|na|n\/a|sk-(?:none|dummy|fake|x+|1234|no-?key.*)|.*(?:fake|dummy)[-_]?key|no[-_ ]?(?:api[-_ ]?)?key.*|not[-_ ]?(?:needed|required|used).*)$/i;

/** Headers that a config may set, as far as their names go. */
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

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
  readonly limits: Map<string, Record<string, number>>;
  /** The longest silence within a call, in milliseconds; 0 for the usual one. */
  silenceMs: number;
}

/** The upstreams of a config: deployments with the same address, key and headers share one. */
export class Upstreams {
  readonly #byIdentity = new Map<string, Upstream>();
  readonly #keyNames: KeyNames;
  readonly #notes: Notes;
  readonly #seconds: number | null;

  /** `seconds` is the timeout of deployments without one. */
  constructor(keyNames: KeyNames, notes: Notes, seconds: number | null) {
    this.#keyNames = keyNames;
    this.#notes = notes;
    this.#seconds = seconds;
  }

  /** Adds the upstream of a target, with what its deployment sets for it. */
  add(target: Target, deployment: Deployment): Target {
    const { name, line: found, model } = target;
    const line = this.#withKey(name, found, deployment);
    const identity = identityOf(line);
    const upstream = this.#byIdentity.get(identity) ?? { name, line, limits: new Map(), silenceMs: 0 };
    this.#byIdentity.set(identity, upstream);
    const { params } = deployment;
    const silence = numberOf(params, 'stream_timeout') ?? numberOf(params, 'timeout') ?? this.#seconds ?? 0;
    upstream.silenceMs = Math.max(upstream.silenceMs, Math.min(Math.ceil(silence * 1_000), maxTimeoutMs));
    const limits = upstream.limits.get(model) ?? {};
    for (const [litellms, ours] of limitNames) {
      const limit = Math.floor(numberOf(params, litellms) ?? 0);
      if (limit > 0) limits[ours] = Math.max(limits[ours] ?? 0, limit);
    }
    // A key of a config has no reference to a variable.
    if (Object.keys(limits).length > 0 && !model.includes('${')) upstream.limits.set(model, limits);
    if (/^\$\{\w+\}\//.test(line.url))
      this.#notes.changed('api_base', 'the variable is to end without a slash', deployment.name);
    return Object.assign({}, target, { line });
  }

  /** The upstreams as they are written, by their names, and the names by what tells upstreams apart. */
  finish(): {
    readonly lines: ReadonlyMap<string, ImportedLine>;
    readonly nameOf: (target: Target) => string;
  } {
    const lines = new Map<string, ImportedLine>();
    const names = new Map<string, string>();
    for (const alike of Map.groupBy(this.#byIdentity.values(), ({ name }) => name).values())
      for (const [upstream, wished] of qualifiedNames(alike)) {
        const name = firstFree(wished, '-', (one) => lines.has(one));
        lines.set(name, settingsOfUpstream(upstream));
        names.set(identityOf(upstream.line), name);
      }
    return { lines, nameOf: ({ name, line }) => names.get(identityOf(line)) ?? name };
  }

  /** The settings of an upstream with the key and the headers of a deployment. */
  #withKey(name: string, line: ImportedLine, deployment: Deployment): ImportedLine {
    const { apiKey: usual, headers: usualHeaders, url, ...settings } = line;
    const apiKey = this.#keyOf(name, usual, deployment);
    const headers = { ...(usualHeaders as object | undefined), ...this.#headersOf(deployment) };
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
    const variable = variableIn(written);
    if (variable !== null) return referenceTo(variable);
    if (placeholder.test(written)) {
      this.#notes.changed('api_key', 'a placeholder, which is left out', model);
      return usual;
    }
    const wished = typeof usual === 'string' ? variableOf({ apiKey: usual }) : null;
    const free = this.#keyNames.nameFor(written, wished ?? variableNamed(`${name}_API_KEY`));
    this.#notes.changed('api_key', `in the file itself: not copied, put it into the variable ${free}`, model);
    return referenceTo(free);
  }

  #headersOf({ params, name: model }: Deployment): Readonly<Record<string, string>> {
    const organization = textOf(params, 'organization');
    const headers: Record<string, string> =
      organization === null ? {} : { 'OpenAI-Organization': withReferences(organization) };
    const given = new Map([...settingsOf(params.get('headers')), ...settingsOf(params.get('extra_headers'))]);
    for (const header of given.keys()) {
      const text = textOf(given, header);
      if (text === null || !headerName.test(header)) continue;
      const named = variableIn(text);
      if (!secretNames.test(header) && !secretValue.test(text)) headers[header] = withReferences(text);
      // A default behind its name may be a key.
      else if (named !== null) headers[header] = referenceTo(named);
      else {
        const variable = this.#keyNames.nameFor(text, variableNamed(header));
        headers[header] = referenceTo(variable);
        this.#notes.changed('extra_headers', `not copied, put it into the variable ${variable}`, model);
      }
    }
    return headers;
  }
}

/** A value that is a key whatever its header is called. */
const secretValue = /^(?:Bearer|Basic)\s|\bsk-|\beyJ/i;

function identityOf(line: ImportedLine): string {
  return JSON.stringify(line);
}

function settingsOfUpstream({ line, limits, silenceMs }: Upstream): ImportedLine {
  const silence = formatDuration(silenceMs);
  const total = silenceMs > usualTotalMs ? { total: silence } : {};
  return {
    ...line,
    ...(silenceMs === 0 ? {} : { timeouts: { firstByte: silence, idle: silence, ...total } }),
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
    if (hostname === name || label === 'api') return '';
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
