import { afterAll } from 'vitest';
import { startUpstream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { startGateway } from './test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from './test-gateway.ts';

/** A gateway in front of a scripted upstream. */
export interface RunningStage {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
}

/** Starts a gateway in front of a scripted upstream, for all tests of a file; both are closed after the last one. */
export async function openStage(options: TestGatewayOptions = {}): Promise<RunningStage> {
  const upstream = await startUpstream();
  const gateway = await startGateway({
    upstreamUrl: upstream.url,
    ...options,
    limits: { requestsPerMinute: 1_000_000, ...options.limits },
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });
  return { upstream, gateway };
}
