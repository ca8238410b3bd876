import type { FailureKind, Failure } from '../../protocol/text.ts';
import type { UpstreamAnswer } from '../ports/upstreams.ts';
import type { DiagnosedCall, Diagnosis, SettingNames } from './call-target.ts';

type Row = (names: SettingNames, call: DiagnosedCall) => Diagnosis;

const slow: Row = () => ({ cause: 'timeout at the provider', advice: 'Check the load of the server.' });

const busy: Row = () => ({
  cause: 'not ready or overloaded',
  advice: 'Wait: a server that loads a model may answer so until it is ready.',
});

/** Explanations of what an answer's words show: they say more than its status. */
const rowsByKind: Partial<Readonly<Record<FailureKind, Row>>> = {
  model_unknown: () => ({
    cause: 'the model is not known there',
    advice: 'Correct the name of the model (some providers expect that of a deployment), or load the model.',
  }),
  content_filtered: () => ({
    cause: 'the text is refused because of its content',
    advice: 'The upstream is not at fault: see what the provider said of the text.',
  }),
  context_too_long: () => ({
    cause: 'the text is longer than the context of the model',
    advice: 'Shorten the text, or use a model with a longer context.',
  }),
};

/** The same for a key or an account that is refused with a status that does not say so. */
const accountRefused: Row = ({ apiKey }, { target }) =>
  target.hasKey
    ? {
        cause: 'the API key or its account is not accepted',
        advice: `Correct ${apiKey}, or check its account at the provider.`,
      }
    : keyRequired(apiKey);

/** What is said of a call without a key, which has no account to correct. */
function keyRequired(apiKey: string): Diagnosis {
  return { cause: 'an API key is required', advice: `Set ${apiKey}.` };
}

/** Explanations of single statuses. */
const rows: Readonly<Record<number, Row>> = {
  401: ({ apiKey }, { target }) =>
    target.hasKey
      ? { cause: 'the API key is not accepted', advice: `Correct ${apiKey}.` }
      : keyRequired(apiKey),
  402: ({ apiKey }, { target }) => ({
    cause: 'payment is required',
    advice: target.hasKey
      ? `Top up the account of the key in ${apiKey}.`
      : `Set ${apiKey}: the key of an account with credit.`,
  }),
  403: ({ apiKey }, { target }) =>
    target.hasKey
      ? {
          cause: 'the API key has no permission',
          advice: `Permit it at the provider, or put another key into ${apiKey}.`,
        }
      : { cause: 'not permitted without an API key', advice: `Set ${apiKey}, or permit it at the server.` },
  404: (_names, call) => ({ cause: 'not found', advice: checkPath(call) }),
  405: (_names, call) => ({ cause: `${call.method} is not allowed there`, advice: checkPath(call) }),
  408: slow,
  429: ({ apiKey }, { target }) => ({
    cause: 'too many requests, or no quota left',
    advice: target.hasKey
      ? `Wait, or raise the limits of the account of the key in ${apiKey}.`
      : `Wait, raise the limits of the server, or set ${apiKey}.`,
  }),
  503: busy,
  504: slow,
  529: busy,
};

/** Explanations of all other statuses, by their first digit. */
const rowsByClass: Readonly<Record<number, Row>> = {
  3: ({ url }) => ({
    cause: 'a redirect, which is not followed',
    advice: `Write the address to which it leads into ${url}.`,
  }),
  4: ({ url, apiKey }, { method }) => ({
    cause: 'the request is refused',
    advice:
      method === 'GET'
        ? `Check ${url} and ${apiKey}.`
        : 'The fault is most likely in the request: see what the provider said of it.',
  }),
  5: () => ({ cause: 'the server failed', advice: 'Check its log, or the status page of the provider.' }),
};

/**
 * Explains an answer with an error status, or with something else than what was asked for: the cause without its call, and the
 * advice. `kind` is the kind of failure that the answer's words show, if they were read.
 */
export function explainStatus(
  { status, contentType }: Pick<UpstreamAnswer, 'status' | 'contentType'>,
  call: DiagnosedCall,
  kind?: FailureKind,
): Diagnosis {
  const rowOfKind = kind === undefined ? undefined : rowsByKind[kind];
  const rowOfAccount = kind === 'auth' ? accountRefused : undefined;
  const row = rowOfKind ?? rows[status] ?? rowOfAccount ?? rowsByClass[Math.floor(status / 100)];
  if (row === undefined) return { cause: unexpectedContent(call, contentType), advice: checkPath(call) };
  const { cause, advice } = row(call.target.names, call);
  return { cause: `${cause} (status ${status})`, advice };
}

function unexpectedContent({ method }: DiagnosedCall, contentType: string): string {
  if (contentType.includes('html')) return 'a web page instead of JSON';
  return method === 'GET'
    ? 'the answer is not a list of models'
    : 'the answer is not in the format of the dialect';
}

/** A path that names a version of an API: `/v1`, `/openai/v1`, `/v1beta`. */
const versionSegment = /\/v\d+((alpha|beta)\d*)?(\/|$)/;

/** Which part of an upstream's address to check, if another server than the expected one answers there. */
export function checkPath({
  method,
  target: { base, names },
}: Pick<DiagnosedCall, 'method' | 'target'>): string {
  if (!versionSegment.test(new URL(base).pathname)) return `Is /v1 missing at the end of ${names.url}?`;
  const other = method === 'GET' ? 'name the models in a config' : 'the name of the model';
  return `Check the path of ${names.url}, or ${other}.`;
}

/** What to do about an answer that ends or breaks off too early. */
export const lookAtProxies = 'Check the log of the server, and the timeouts of the proxies before it.';

/** Explanations by the kind of a failure, and by its detail, which may be empty. */
const ofBadEnds: Partial<Readonly<Record<FailureKind, (detail: string) => Diagnosis>>> = {
  unfinished: () => ({
    cause: 'the answer has an end marker, but no finish reason',
    advice: 'Set finishReason: optional, if the server never gives a finish reason.',
  }),
  truncated: (detail) => ({
    cause: detail === '' ? 'the answer ends without a finish reason and without an end marker' : detail,
    advice: lookAtProxies,
  }),
  empty: () => ({
    cause: 'the answer ends before any text, without an end marker',
    advice: lookAtProxies,
  }),
  invalid: (detail) => ({
    cause: `the upstream sent ${detail}`,
    advice: 'Report it to the makers of the server: the gateway ends such an answer as upstream_invalid.',
  }),
};

/**
 * Explains an answer with a good status that is cut off or breaks its protocol: the cause without its call, and the advice.
 * `null` for every other failure.
 */
export function explainAnswer({ kind, detail }: Pick<Failure, 'kind' | 'detail'>): Diagnosis | null {
  return ofBadEnds[kind]?.(detail) ?? null;
}
