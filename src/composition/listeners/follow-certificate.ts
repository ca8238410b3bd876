import { followSecret } from '../../background/follow-secret.ts';
import { readAt } from '../../config/problem.ts';
import { certificateEndMs, readTlsFiles } from '../../config/tls-files.ts';
import type { TlsPaths } from '../../config/tls-files.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { CertificateSource } from '../../http/listen/tls-server.ts';
import type { ProcessServices } from '../process-services.ts';
import { dayMs } from '../../shared/duration.ts';
import { settledCertificates } from '../settled-reads.ts';

/** How long before the end of a certificate it is in the log, once a day. */
const warnMs = 14 * dayMs;

/** Where the config has the files. */
const setting = ['server', 'tls'];

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
  // The config has a certificate and its key, or neither.
  return { paths: tls, files: readAt(setting, () => readTlsFiles(tls)) as ReadCertificate['files'] };
}

/**
 * Follows the files of a certificate, beginning with what was read at the start; `null` without one. Files that can't be
 * used leave the last certificate in force.
 */
export function followCertificate(
  first: ReadCertificate | null,
  services: ProcessServices,
): FollowedCertificate | null {
  if (first === null) return null;
  const { clock, log } = services;
  const { metrics } = services.observability;
  let current = first.files;
  let use: Parameters<FollowedCertificate['onChange']>[0] | null = null;
  const showEnd = createEndWarning(services);
  const readSettled = settledCertificates(current, first.paths, setting);
  const read = async (): Promise<ReadCertificate['files']> => {
    const found = await readSettled();
    if (found !== current) {
      current = found;
      use?.(current);
      metrics.configReloaded('ok');
      log.notice('the TLS certificate is replaced', { notAfter: endOf(current) });
    }
    showEnd(current.cert);
    return current;
  };
  showEnd(current.cert);
  const followed = followSecret(current, {
    read,
    clock,
    onFault(error) {
      metrics.configReloaded('failed');
      log.fault('the TLS certificate can not be replaced: the last one stays in use', error);
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

function endOf({ cert }: CertificateSource['current']): string {
  return new Date(certificateEndMs(cert)).toISOString();
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
