import { followSecret } from '../background/follow-secret.ts';
import type { Config } from '../config/schema/schema.ts';
import { writePath } from '../config/problem.ts';
import { readSecretFile, readSecretFileAgain } from '../config/secret-file.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Log } from '../telemetry/logger.ts';

/** The API keys of the upstreams of one config, those in files as they are now. */
export interface UpstreamKeys {
  /** The key of an upstream at this moment; `null` for one that needs none. */
  keyOf(upstream: string): string | null;
}

/** Keys whose files are read again and again. */
export interface FollowedKeys extends UpstreamKeys {
  /** Stops reading files. */
  stop(): void;
}

/** The key of an upstream as it was first read, and its file; `null` for a key that is in no file. */
interface FirstKey {
  readonly key: string | null;
  readonly file: string | null;
}

/** The keys of the upstreams of one config by the names of those, as they were first read. */
export type FirstKeys = ReadonlyMap<string, FirstKey>;

/** Reads the files that hold the keys of upstreams. Throws with the reason if one of them can't be read. */
export function readUpstreamKeys({ upstreams }: Config): FirstKeys {
  const keys = new Map<string, FirstKey>();
  for (const [upstream, { apiKey }] of Object.entries(upstreams)) {
    if (typeof apiKey === 'object')
      keys.set(upstream, { key: readFileOf(upstream, apiKey.file), file: apiKey.file });
    else keys.set(upstream, { key: apiKey ?? null, file: null });
  }
  return keys;
}

/** Reads the file of a key again: it may have changed since the config was checked. */
function readFileOf(upstream: string, file: string): string {
  try {
    return readSecretFile(file);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${writePath(['upstreams', upstream, 'apiKey', 'file'])}: ${reason}`, { cause: error });
  }
}

/** Begins to follow the files that hold the keys of upstreams: after all of them were read, so that nothing fails here. */
export function followUpstreamKeys(
  first: FirstKeys,
  clock: Clock,
  { fault, notice }: Pick<Log, 'fault' | 'notice'>,
): FollowedKeys {
  const keys = [...first].map(([upstream, { key, file }]) => {
    if (key === null || file === null) return [upstream, { current: key, stop() {} }] as const;
    const followed = followSecret(key, {
      read: () => readSecretFileAgain(file),
      clock,
      onFault: (error) =>
        fault('the file of an API key can not be read: the last key stays in use', error, { upstream }),
      onRecovery: () => notice('the file of an API key can be read again', { upstream }),
    });
    return [upstream, followed] as const;
  });
  const byUpstream = new Map(keys);
  return {
    keyOf: (upstream) => byUpstream.get(upstream)?.current ?? null,
    stop() {
      for (const followed of byUpstream.values()) followed.stop();
    },
  };
}
