import { isDeepStrictEqual } from 'node:util';
import { followSecret } from '../../background/follow-secret.ts';
import type { FollowedSecret } from '../../background/follow-secret.ts';
import { readAt } from '../../config/problem.ts';
import { readTlsFiles } from '../../config/tls-files.ts';
import { readSecretCommand, readSecretCommandAgain } from '../../config/secret-command.ts';
import { readSecretFile, readSecretFileAgain } from '../../config/secret-file.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { Certificates } from '../../domain/ports/network.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { LogFields } from '../../domain/ports/telemetry.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import { settledCertificates, settledReads } from '../settled-reads.ts';
import { keySourceOf, wordsOf } from './upstream-keys.ts';
import type { KeySource } from './upstream-keys.ts';

/** The API keys and certificates of the upstreams of one config, those in files and of commands as they are now. */
export interface UpstreamFiles {
  /** The key of an upstream at this moment; `null` for one that needs none. */
  keyOf(upstream: string): string | null;
  /** Notes that an upstream refused its key: a command is run again, for another one. */
  keyRefused(upstream: string): void;
  /** The key that a command of any of the upstreams has printed; `null` for a command that none of them has. */
  printedBy(command: readonly string[]): string | null;
  /** The certificates of an upstream at this moment: the same object as long as they are the same. */
  certificatesOf(upstream: string): Certificates;
  /** The same for a webhook. */
  certificatesOfWebhook(webhook: string): Certificates;
}

/** What was first read for an upstream. */
interface FirstRead {
  readonly key: string | null;
  /** Where the key comes from; `null` for one that the config has, and for none. */
  readonly keySource: KeySource | null;
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

/**
 * How long the commands of API keys may take together at a reload, in milliseconds. The process does nothing else meanwhile:
 * its lease, which it renews every 5 s, must not end, and it must not be killed as one that hangs.
 */
export const reloadCommandsMs = 8_000;

/**
 * Reads the files of upstreams and webhooks: API keys and certificates, and runs the commands of API keys. Throws with the
 * reason if one can't be used. A command that `previous` has run is not run again: requests would wait for it. Others may take
 * `commandsMs` milliseconds together where there is a `previous`.
 */
export function readUpstreamFiles(
  { upstreams, webhooks }: Config,
  previous: Pick<UpstreamFiles, 'printedBy'> | null = null,
  commandsMs: number = reloadCommandsMs,
): FirstFiles {
  const printed = new Map<string, string>();
  const endMs = previous === null ? Number.POSITIVE_INFINITY : performance.now() + commandsMs;
  const readKey: ReadKey = (source, path) => {
    if (source.kind === 'file') return readAt([...path, 'file'], () => readSecretFile(source.file));
    const id = JSON.stringify(source.command);
    const known = printed.get(id) ?? previous?.printedBy(source.command);
    const key = known ?? readAt([...path, 'command'], () => readSecretCommand(within(source, endMs)));
    printed.set(id, key);
    return key;
  };
  return {
    upstreams: readFiles('upstreams', upstreams, readKey),
    webhooks: readFiles('webhooks', webhooks, readKey),
  };
}

/** A command that ends until a moment of the monotonic clock, with a millisecond at least: 0 would be no limit. */
function within<Source extends { readonly timeout: number }>(source: Source, endMs: number): Source {
  const leftMs = Math.max(1, Math.floor(endMs - performance.now()));
  return { ...source, timeout: Math.min(source.timeout, leftMs) };
}

/** Reads an API key from its source, whose setting is at a path of the config. */
type ReadKey = (source: KeySource, path: readonly string[]) => string;

/** The settings of files. */
type FileSettings = Partial<Pick<Config['upstreams'][string], 'apiKey' | 'tls'>>;

function readFiles(
  section: string,
  all: Readonly<Record<string, FileSettings>>,
  readKey: ReadKey,
): FirstReads {
  const files = new Map<string, FirstRead>();
  for (const [name, { apiKey, tls = null }] of Object.entries(all)) {
    const keySource = keySourceOf({ apiKey });
    const inConfig = typeof apiKey === 'string' ? apiKey : null;
    const key = keySource === null ? inConfig : readKey(keySource, [section, name, 'apiKey']);
    const certificates =
      tls === null ? noCertificates : readAt([section, name, 'tls'], () => readTlsFiles(tls));
    files.set(name, { key, keySource, certificates, tls });
  }
  return files;
}

/** For commands: a key's file that can't be read again while one runs changes nothing in it. */
export const unlogged = { fault() {}, notice() {} };

/** Follows the files of upstreams and webhooks, until `stop`: after all of them were read, so that nothing fails here. */
export function followUpstreamFiles(
  { upstreams, webhooks }: FirstFiles,
  clock: Clock,
  log: Pick<Log, 'fault' | 'notice'>,
): UpstreamFiles & { stop(): void } {
  const ofUpstreams = followFiles(upstreams, clock, log, (upstream) => ({ upstream }));
  const ofWebhooks = followFiles(webhooks, clock, log, (webhook) => ({ webhook }));
  return {
    keyOf: (upstream) => ofUpstreams.get(upstream)?.key.current ?? null,
    keyRefused: (upstream) => ofUpstreams.get(upstream)?.key.refused(),
    printedBy(command) {
      for (const [name, { keySource }] of upstreams)
        if (keySource?.kind === 'command' && isDeepStrictEqual(keySource.command, command))
          return ofUpstreams.get(name)?.key.current ?? null;
      return null;
    },
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

/** Follows the files of all upstreams or of all webhooks, each with its name in the fields of the log. */
function followFiles(
  first: FirstReads,
  clock: Clock,
  { fault, notice }: Pick<Log, 'fault' | 'notice'>,
  fieldsOf: (name: string) => LogFields,
) {
  const follow = <Value>(
    value: Value,
    source: { readonly read: (stopping: AbortSignal) => Promise<Value>; readonly everyMs?: number } | null,
    [fails, worksAgain]: readonly [string, string],
    name: string,
  ): FollowedSecret<Value> =>
    source === null
      ? { current: value, refused() {}, stop() {} }
      : followSecret(value, {
          ...source,
          clock,
          onFault: (error) => fault(fails, error, fieldsOf(name)),
          onRecovery: () => notice(worksAgain, fieldsOf(name)),
        });
  return new Map(
    [...first].map(([name, { key, keySource, certificates, tls }]) => {
      // Others than the last ones open connections with a full handshake again.
      const read = settledCertificates(certificates, tls ?? {}, ['tls']);
      const ofTls = tls?.ca === undefined && tls?.cert === undefined ? null : { read };
      return [
        name,
        {
          key: follow<string | null>(key, sourceOf(keySource, key), wordsOf(keySource), name),
          certificates: follow(certificates, ofTls, wordsOfCertificates, name),
        },
      ] as const;
    }),
  );
}

/** How an API key is read again; `null` for one that is in the config. */
function sourceOf(source: KeySource | null, first: string | null) {
  if (source === null) return null;
  if (source.kind === 'file') return { read: settledReads(first, () => readSecretFileAgain(source.file)) };
  const { every: everyMs } = source;
  return { read: (stopping: AbortSignal) => readSecretCommandAgain(source, stopping), everyMs };
}

const wordsOfCertificates = [
  'a file of certificates can not be read: the last certificates stay in use',
  'a file of certificates can be read again',
] as const;
