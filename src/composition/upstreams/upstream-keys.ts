import type { Config } from '../../config/schema/schema.ts';
import { bearer } from '../../protocol/upstream/dialect.ts';
import type { AuthScheme } from '../../protocol/upstream/dialect.ts';
import { dialects } from '../../protocol/upstream/dialects.ts';
import type { Upstream } from '../../transport/upstreams.ts';

type UpstreamConfig = Config['upstreams'][string];

/** Where an API key comes from that the config does not have itself. */
export type KeySource =
  | { readonly kind: 'file'; readonly file: string }
  | {
      readonly kind: 'command';
      readonly command: readonly string[];
      /** How long a key is used, and how long the command may take, in milliseconds. */
      readonly every: number;
      readonly timeout: number;
    };

/** A setting of an API key as either of its forms may have it. */
type EitherForm = Partial<
  Extract<KeySource, { kind: 'file' }> & Omit<Extract<KeySource, { kind: 'command' }>, 'kind'>
>;

/** The source of an API key; `null` for one that the config has, and for none. */
export function keySourceOf({ apiKey }: Partial<Pick<UpstreamConfig, 'apiKey'>>): KeySource | null {
  if (typeof apiKey !== 'object') return null;
  const { file, command = [], every = 0, timeout = 0 } = apiKey as EitherForm;
  return file === undefined ? { kind: 'command', command, every, timeout } : { kind: 'file', file };
}

/**
 * Reads the headers of a call: the dialect's own, the API key in the dialect's scheme, and those of the config. They are
 * the same object until the key is another one.
 */
export function headersOf(
  { authHeader, headers: added, dialects: [dialect] }: UpstreamConfig,
  readKey: () => string | null,
): () => Record<string, string> {
  if (dialect === undefined) throw new Error('upstream without a dialect');
  const { auth, headers = {} } = dialects[dialect];
  const { header, prefix } =
    authHeader === undefined || authHeader === auth.header ? auth : authSchemeFor(authHeader);
  const write = (key: string | null): Record<string, string> => ({
    ...headers,
    ...added,
    ...(key === null ? {} : { [header]: prefix + key }),
  });
  const first = readKey();
  let last = { key: first, headers: write(first) };
  return () => {
    const key = readKey();
    if (key !== last.key) last = { key, headers: write(key) };
    return last.headers;
  };
}

/** The scheme for a header that the config chose in place of the dialect's. */
function authSchemeFor(header: string): AuthScheme {
  return header === bearer.header ? bearer : { header, prefix: '' };
}

/** Tells that the upstream has refused its API key, which may have ended before its time. */
export function tellRefusals(upstream: Upstream, refused: () => void): Upstream {
  return {
    ...upstream,
    async call(call, signal) {
      const answer = await upstream.call(call, signal);
      if (answer.kind === 'answer' && answer.status === 401) refused();
      return answer;
    },
  };
}

/** What has to be corrected where an API key is in a file, or is printed by a command; `setting` is its place in the config. */
export function describeKeySource(source: KeySource, setting: string): string {
  return source.kind === 'file'
    ? `the file ${source.file} (${setting})`
    : `what the command of ${setting} prints`;
}

/** What the log has when an API key can't be read again, and when it can be. */
export function wordsOf(source: KeySource | null): readonly [string, string] {
  return source?.kind === 'command'
    ? [
        'the command of an API key has failed: the last key stays in use',
        'the command of an API key works again',
      ]
    : [
        'the file of an API key can not be read: the last key stays in use',
        'the file of an API key can be read again',
      ];
}
