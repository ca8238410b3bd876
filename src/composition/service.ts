import type { Router } from 'express';
import type { Config } from '../config/schema.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import { createAdminRouter } from '../http/admin-router.ts';
import { createPublicRouter } from '../http/public-router.ts';
import { probeUpstreams } from '../operations/probe-upstreams.ts';
import { verifyLedger } from '../operations/verify-ledger.ts';
import type { Ports } from '../pipeline/exchange.ts';
import { isRefusal } from '../shared/errors.ts';
import { nextId } from './foundation.ts';
import type { Foundation } from './foundation.ts';
import { composeModels, composePassthrough, composeProbes, composeUpstreams } from './upstreams.ts';

/** What one config makes of the foundation: upstreams, models, and the routers that serve them. */
export interface Service {
  readonly config: Config;
  readonly router: Router;
  readonly admin: Router;
  readonly models: Ports['models'];
  upstreamStates(): Readonly<Record<string, UpstreamState>>;
  /** Lets go of the upstreams; whatever still runs over them breaks. */
  close(): Promise<void>;
}

export function composeService(config: Config, foundation: Foundation, adminToken: string): Service {
  const { clock, store, inFlight, health, keys, log, metrics, books } = foundation;
  const upstreams = composeUpstreams(config, clock);
  const passthrough = composePassthrough(config);
  const stopProbes = probeUpstreams(composeProbes(config), upstreams, health, clock);
  const models = composeModels(config, upstreams, clock);
  const { concurrency, requestsPerMinute, queueWait: queueWaitMs, balanceMode } = config.limits;
  const { compatibility } = config;
  const limits = { concurrency, requestsPerMinute, queueWaitMs };
  const ports: Ports = {
    ...foundation,
    keys: foundation.directory,
    models,
    upstreams,
    random: Math.random,
    balanceMode,
    defaultLimits: limits,
    defaultCompatibility: compatibility,
  };
  const defaults = { limits, compatibility };
  const upstreamStates = () =>
    Object.fromEntries(Object.keys(config.upstreams).map((name) => [name, health.state(name)]));
  return {
    config,
    models,
    upstreamStates,
    router: createPublicRouter(
      ports,
      { ...store, keys: foundation.directory, inFlight, defaults },
      passthrough,
      nextId,
      config.server.maxBody,
    ),
    admin: createAdminRouter({
      token: adminToken,
      nextId,
      keys: { keys, defaults, countInFlight: (keyId) => inFlight.count(keyId) },
      records: {
        listRecords: (filter, limit, before) => store.listRecords(filter, limit, before),
        running: () => inFlight.list(),
        cancel: (requestId) => inFlight.cancel(requestId),
        verifyLedger: () => verifyLedger(books),
      },
      metrics,
      onFault: log.fault,
      upstreamStates: () =>
        Object.fromEntries(
          Object.entries(upstreamStates()).map(([name, state]) => [
            name,
            health.coolingMs(name) > 0 ? 'cooling' : state,
          ]),
        ),
      notReady: () => whyNotReady(ports, foundation),
    }),
    async close() {
      stopProbes();
      for (const { agent } of passthrough) agent.destroy();
      await upstreams.close();
    },
  };
}

async function whyNotReady({ inFlight, models }: Ports, { engine }: Foundation): Promise<string | null> {
  if (!inFlight.accepting) return 'draining';
  const opened = await engine.ready.then(
    () => engine.broken === null,
    () => false,
  );
  if (!opened) return 'the database is not open';
  return isRefusal(await models.list()) ? 'no list of models from the upstream yet' : null;
}
