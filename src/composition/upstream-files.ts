import { isDeepStrictEqual } from 'node:util';
import { followSecret } from '../background/follow-secret.ts';
import { TlsFileError, checkTlsFiles, readTlsFiles, readTlsFilesAgain } from '../config/tls-files.ts';
import type { TlsPaths } from '../config/tls-files.ts';
import { writePath } from '../config/problem.ts';
import { readSecretFile, readSecretFileAgain } from '../config/secret-file.ts';
import type { Config } from '../config/schema/schema.ts';
import type { Certificates } from '../domain/ports/certificates.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Log } from '../telemetry/logger.ts';

/** The API keys and certificates of the upstreams of one config, those in files as they are now. */
export interface UpstreamFiles {
  /** The key of an upstream at this moment; `null` for one that needs none. */
  keyOf(upstream: string): string | null;
  /** The certificates of an upstream at this moment: the same object as long as they are the same. */
  certificatesOf(upstream: string): Certificates;
}

/** What is read again and again. */
export interface FollowedFiles extends UpstreamFiles {
  /** Stops reading files. */
  stop(): void;
}

/** What was first read for an upstream. */
interface FirstRead {
  readonly key: string | null;
  /** The file of the key; `null` for a key that is in no file. */
  readonly keyFile: string | null;
  readonly certificates: Certificates;
  /** The settings of the certificates' files; `null` if there are none. */
  readonly tls: Config['upstreams'][string]['tls'] | null;
}

/** What was first read for the upstreams of one config, by their names. */
export type FirstFiles = ReadonlyMap<string, FirstRead>;

const noCertificates: Certificates = {};

/** Reads the files of upstreams: API keys and certificates. Throws with the reason if one of them can't be used. */
export function readUpstreamFiles({ upstreams }: Config): FirstFiles {
  const files = new Map<string, FirstRead>();
  for (const [upstream, { apiKey, tls = null }] of Object.entries(upstreams)) {
    const keyFile = typeof apiKey === 'object' ? apiKey.file : null;
    const key =
      typeof apiKey === 'object'
        ? readAt(['upstreams', upstream, 'apiKey', 'file'], () => readSecretFile(apiKey.file))
        : (apiKey ?? null);
    const certificates =
      tls === null ? noCertificates : readAt(['upstreams', upstream, 'tls'], () => readTlsFiles(tls));
    files.set(upstream, { key, keyFile, certificates, tls });
  }
  return files;
}

/** Reads a file again, which may have changed since the config was checked. */
function readAt<Result>(path: readonly string[], read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const where = error instanceof TlsFileError ? [...path, error.setting] : path;
    throw new Error(`${writePath(where)}: ${reason}`, { cause: error });
  }
}

/** Begins to follow the files of upstreams: after all of them were read, so that nothing fails here. */
export function followUpstreamFiles(
  first: FirstFiles,
  clock: Clock,
  { fault, notice }: Pick<Log, 'fault' | 'notice'>,
): FollowedFiles {
  const follow = <Value>(
    value: Value,
    read: (() => Promise<Value>) | null,
    [what, last]: readonly [string, string],
    upstream: string,
  ) =>
    read === null
      ? { current: value, stop() {} }
      : followSecret(value, {
          read,
          clock,
          onFault: (error) => fault(`${what} can not be read: the last ${last} in use`, error, { upstream }),
          onRecovery: () => notice(`${what} can be read again`, { upstream }),
        });
  const followed = new Map(
    [...first].map(([upstream, { key, keyFile, certificates, tls }]) => {
      const readKey = keyFile === null ? null : () => readSecretFileAgain(keyFile);
      let last = certificates;
      const readCertificates = async (): Promise<Certificates> => {
        const read = await readAgain(tls ?? {}).catch(withSetting);
        // Others open connections with a full handshake again.
        if (!isDeepStrictEqual(read, last)) last = read;
        return last;
      };
      const ofTls = tls?.ca === undefined && tls?.cert === undefined ? null : readCertificates;
      return [
        upstream,
        {
          key: follow<string | null>(key, readKey, ['the file of an API key', 'key stays'], upstream),
          certificates: follow(
            certificates,
            ofTls,
            ['a file of certificates', 'certificates stay'],
            upstream,
          ),
        },
      ] as const;
    }),
  );
  return {
    keyOf: (upstream) => followed.get(upstream)?.key.current ?? null,
    certificatesOf: (upstream) => followed.get(upstream)?.certificates.current ?? noCertificates,
    stop() {
      for (const { key, certificates } of followed.values()) {
        key.stop();
        certificates.stop();
      }
    },
  };
}

async function readAgain(paths: TlsPaths): Promise<Certificates> {
  const read = await readTlsFilesAgain(paths);
  checkTlsFiles(read);
  return read;
}

function withSetting(error: TlsFileError): never {
  throw new Error(`tls.${error.setting}: ${error.message}`, { cause: error });
}
