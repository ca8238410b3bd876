import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { makeCertificate, trustCertificate } from './certificate.ts';
import type { TestCertificate } from './certificate.ts';
import { openStage } from './stage.ts';
import type { TestGatewayOptions } from './test-gateway.ts';

/** A certificate that all clients of this process trust, for all tests of a file. */
export function openCertificate(): TestCertificate & { readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-tls-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const certificate = makeCertificate(folder);
  trustCertificate(certificate);
  return { ...certificate, folder };
}

/** A gateway with TLS of its own in front of a scripted upstream, for all tests of a file. */
export async function openTlsStage(
  options: TestGatewayOptions = {},
): Promise<Awaited<ReturnType<typeof openStage>> & { readonly certificate: TestCertificate }> {
  const certificate = openCertificate();
  const stage = await openStage({ ...options, server: { ...options.server, tls: certificate.paths } });
  return { ...stage, certificate };
}
