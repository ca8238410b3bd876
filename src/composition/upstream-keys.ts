import { followSecret } from '../background/follow-secret.ts';
import type { Config } from '../config/schema/schema.ts';
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

/** Begins to follow the files that hold the keys of upstreams. Throws with the reason if one of them can't be read. */
export function followUpstreamKeys(
  { upstreams }: Config,
  clock: Clock,
  { fault, notice }: Pick<Log, 'fault' | 'notice'>,
): FollowedKeys {
  const keys = Object.entries(upstreams).map(([upstream, { apiKey }]) => {
    if (typeof apiKey !== 'object') return [upstream, { current: apiKey ?? null, stop() {} }] as const;
    const { file } = apiKey;
    const followed = followSecret(readSecretFile(file), {
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
