import { followSecret } from '../../background/follow-secret.ts';
import {
  TlsFileError,
  certificateEndMs,
  checkTlsFiles,
  readTlsFiles,
  readTlsFilesAgain,
} from '../../config/tls-files.ts';
import type { TlsPaths } from '../../config/tls-files.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { Certificates } from '../../domain/ports/network.ts';
import type { CertificateSource } from '../../http/listen/tls-server.ts';
import type { ProcessServices } from '../process-services.ts';
import { settledReads } from '../settled-reads.ts';

const dayMs = 86_400_000;

/** How long before the end of a certificate it is in the log, once a day. */
const warnMs = 14 * dayMs;

/** A certificate, and where it was read. */
export interface ReadCertificate {
  readonly paths: TlsPaths;
  readonly files: CertificateSource['current'];
}

/** A certificate whose files are read again and again. */
export type FollowedCertificate = CertificateSource & { stop(): void };

/** Reads the files of a config's certificate; `null` without one. Throws an error that names the setting at fault. */
export function readCertificate({ server: { tls } }: Pick<Config, 'server'>): ReadCertificate | null {
  if (tls === undefined) return null;
  try {
    return { paths: tls, files: pairOf(readTlsFiles(tls)) };
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    throw new Error(nameSetting(error), { cause: error });
  }
}

/**
 * Follows the files of a certificate, beginning with what was read at the start; `null` without one. Files that can't be
 * used leave the last certificate in force. What may be half replaced counts when it is the same at the next look, as a new
 * certificate or as a fault.
 */
export function followCertificate(
  first: ReadCertificate | null,
  services: ProcessServices,
): FollowedCertificate | null {
  if (first === null) return null;
  const { paths } = first;
  const { clock, log } = services;
  const { metrics } = services.observability;
  let current = first.files;
  let use: Parameters<FollowedCertificate['onChange']>[0] | null = null;
  const showEnd = createEndWarning(services);
  const readPair = settledReads(current, async () => pairOf(await readTlsFilesAgain(paths)));
  const read = async (): Promise<string> => {
    const texts = await readPair();
    if (textOf(texts) !== textOf(current)) {
      checkTlsFiles(texts);
      current = texts;
      use?.(current);
      metrics.configReloaded('ok');
      log.notice('the TLS certificate is replaced', { notAfter: endOf(current) });
    }
    showEnd(current.cert);
    return textOf(current);
  };
  showEnd(current.cert);
  const followed = followSecret(textOf(current), {
    read,
    clock,
    onFault(error) {
      metrics.configReloaded('failed');
      const reason = error instanceof TlsFileError ? nameSetting(error) : error;
      log.fault('the TLS certificate can not be replaced: the last one stays in use', reason);
    },
    onRecovery: () => log.notice('the files of the TLS certificate can be used again'),
  });
  return {
    get current() {
      return current;
    },
    onChange: (next) => void (use = next),
    stop: () => followed.stop(),
  };
}

function pairOf({ cert = '', key = '' }: Certificates): CertificateSource['current'] {
  return { cert, key };
}

function endOf({ cert }: CertificateSource['current']): string {
  return new Date(certificateEndMs(cert)).toISOString();
}

function textOf({ cert, key }: CertificateSource['current']): string {
  return `${cert}\n${key}`;
}

function nameSetting({ setting, message }: TlsFileError): string {
  return `server.tls.${setting}: ${message}`;
}

/** Returns a function that shows when a certificate ends, and warns when that is near: once a day, and of each new one. */
function createEndWarning({ clock, log, observability }: ProcessServices): (cert: string) => void {
  let warned: { readonly cert: string; readonly atMs: number } | null = null;
  return (cert) => {
    const endMs = certificateEndMs(cert);
    observability.metrics.certificateEnds(endMs);
    const leftMs = endMs - clock.now();
    const isWarned = warned?.cert === cert && clock.monotonicMs() - warned.atMs < dayMs;
    if (leftMs > warnMs || isWarned) return;
    warned = { cert, atMs: clock.monotonicMs() };
    log.notice(
      leftMs > 0
        ? 'the TLS certificate ends soon: replace the files of server.tls'
        : 'the TLS certificate has ended, and clients refuse it: replace the files of server.tls',
      { notAfter: new Date(endMs).toISOString() },
    );
  };
}
