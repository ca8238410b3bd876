import { isDeepStrictEqual } from 'node:util';
import { followSecret } from '../background/follow-secret.ts';
import type { FollowedSecret } from '../background/follow-secret.ts';
import { TlsFileError, checkTlsFiles, readTlsFiles, readTlsFilesAgain } from '../config/tls-files.ts';
import type { TlsPaths } from '../config/tls-files.ts';
import { writePath } from '../config/problem.ts';
import { readSecretFile, readSecretFileAgain } from '../config/secret-file.ts';
import type { Config } from '../config/schema/schema.ts';
import type { Certificates } from '../domain/ports/certificates.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LogFields } from '../domain/ports/telemetry.ts';
import type { Log } from '../telemetry/logger.ts';

/** The API keys and certificates of the upstreams of one config, those in files as they are now. */
export interface UpstreamFiles {
  /** The key of an upstream at this moment; `null` for one that needs none. */
  keyOf(upstream: string): string | null;
  /** The certificates of an upstream at this moment: the same object as long as they are the same. */
  certificatesOf(upstream: string): Certificates;
  /** The same for a webhook. */
  certificatesOfWebhook(webhook: string): Certificates;
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

/** What was first read for the upstreams or the webhooks of one config, by their names. */
type FirstReads = ReadonlyMap<string, FirstRead>;

/** What was first read for one config. */
export interface FirstFiles {
  readonly upstreams: FirstReads;
  readonly webhooks: FirstReads;
}

const noCertificates: Certificates = {};

/** Reads the files of upstreams and webhooks: API keys and certificates. Throws with the reason if one can't be used. */
export function readUpstreamFiles({ upstreams, webhooks }: Config): FirstFiles {
  return { upstreams: readFiles('upstreams', upstreams), webhooks: readFiles('webhooks', webhooks) };
}

/** The settings of files. */
type FileSettings = Partial<Pick<Config['upstreams'][string], 'apiKey' | 'tls'>>;

function readFiles(section: string, all: Readonly<Record<string, FileSettings>>): FirstReads {
  const files = new Map<string, FirstRead>();
  for (const [name, { apiKey, tls = null }] of Object.entries(all)) {
    const keyFile = typeof apiKey === 'object' ? apiKey.file : null;
    const key =
      typeof apiKey === 'object'
        ? readAt([section, name, 'apiKey', 'file'], () => readSecretFile(apiKey.file))
        : (apiKey ?? null);
    const certificates =
      tls === null ? noCertificates : readAt([section, name, 'tls'], () => readTlsFiles(tls));
    files.set(name, { key, keyFile, certificates, tls });
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

/** Begins to follow the files of upstreams and webhooks: after all of them were read, so that nothing fails here. */
export function followUpstreamFiles(
  { upstreams, webhooks }: FirstFiles,
  clock: Clock,
  log: Pick<Log, 'fault' | 'notice'>,
): FollowedFiles {
  const ofUpstreams = followFiles(upstreams, clock, log, (upstream) => ({ upstream }));
  const ofWebhooks = followFiles(webhooks, clock, log, (webhook) => ({ webhook }));
  return {
    keyOf: (upstream) => ofUpstreams.get(upstream)?.key.current ?? null,
    certificatesOf: (upstream) => ofUpstreams.get(upstream)?.certificates.current ?? noCertificates,
    certificatesOfWebhook: (webhook) => ofWebhooks.get(webhook)?.certificates.current ?? noCertificates,
    stop() {
      for (const { key, certificates } of [...ofUpstreams.values(), ...ofWebhooks.values()]) {
        key.stop();
        certificates.stop();
      }
    },
  };
}

/** The files of one upstream or webhook. */
interface FilesOfOne {
  readonly key: FollowedSecret<string | null>;
  readonly certificates: FollowedSecret<Certificates>;
}

function followFiles(
  first: FirstReads,
  clock: Clock,
  { fault, notice }: Pick<Log, 'fault' | 'notice'>,
  fieldsOf: (name: string) => LogFields,
): ReadonlyMap<string, FilesOfOne> {
  const follow = <Value>(
    value: Value,
    read: (() => Promise<Value>) | null,
    [what, last]: readonly [string, string],
    name: string,
  ) =>
    read === null
      ? { current: value, stop() {} }
      : followSecret(value, {
          read,
          clock,
          onFault: (error) =>
            fault(`${what} can not be read: the last ${last} in use`, error, fieldsOf(name)),
          onRecovery: () => notice(`${what} can be read again`, fieldsOf(name)),
        });
  return new Map(
    [...first].map(([name, { key, keyFile, certificates, tls }]) => {
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
        name,
        {
          key: follow<string | null>(key, readKey, ['the file of an API key', 'key stays'], name),
          certificates: follow(certificates, ofTls, ['a file of certificates', 'certificates stay'], name),
        },
      ] as const;
    }),
  );
}

async function readAgain(paths: TlsPaths): Promise<Certificates> {
  const read = await readTlsFilesAgain(paths);
  checkTlsFiles(read);
  return read;
}

function withSetting(error: TlsFileError): never {
  throw new Error(`tls.${error.setting}: ${error.message}`, { cause: error });
}
