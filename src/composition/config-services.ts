import { isDeepStrictEqual } from 'node:util';
import type { Router } from 'express';
import { isDiscovered } from '../config/schema.ts';
import type { Config } from '../config/schema.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import { createAdminRouter } from '../http/admin-router.ts';
import { createPublicRouter } from '../http/public-router.ts';
import { probeUpstreams } from '../background/probe-upstreams.ts';
import type { Ports } from '../pipeline/exchange.ts';
import { isRefusal } from '../shared/errors.ts';
import type { ProcessServices } from './process-services.ts';
import { composeModels, composePassthrough, composeProbes, composeUpstreams } from './upstreams.ts';
import type { PreviousModels, Models } from './upstreams.ts';

/** What one config makes of the foundation: upstreams, models, and the routers that serve them. */
export interface ConfigServices {
  readonly config: Config;
  readonly router: Router;
  readonly admin: Router;
  readonly models: Models;
  upstreamStates(): Readonly<Record<string, UpstreamState>>;
  /** Stops what it does by itself: another service is in force. What runs over it goes on. */
  stopBackgroundWork(): void;
  /** Lets go of the upstreams; whatever still runs over them breaks. */
  close(): Promise<void>;
}

/** What the states of a circuit are in plain words. */
const shownStates: Readonly<Record<UpstreamState, string>> = {
  closed: 'ok',
  half_open: 'being tried again',
  open: 'failing',
};

/** `before` is the service that this one takes the place of. */
export function createConfigServices(
  config: Config,
  foundation: ProcessServices,
  adminToken: string,
  before: ConfigServices | null,
): ConfigServices {
  const { clock, store, inFlight, health, keys, log, metrics } = foundation;
  const upstreams = composeUpstreams(config, clock);
  const passthrough = composePassthrough(config);
  const stopProbes = probeUpstreams(composeProbes(config), upstreams, health, clock);
  const models = composeModels(
    config,
    upstreams,
    clock,
    log.fault,
    previousModelsOf(config, foundation, before),
  );
  const { concurrency, requestsPerMinute, queueWait: queueWaitMs, balanceMode } = config.limits;
  const { compatibility } = config;
  const limits = { concurrency, requestsPerMinute, queueWaitMs };
  const ports: Ports = {
    ...foundation,
    keys: foundation.directory,
    models: models.catalogue,
    upstreams,
    random: Math.random,
    balanceMode,
    defaultLimits: limits,
    defaultCompatibility: compatibility,
  };
  const defaults = { limits, compatibility };
  const isCooling = (name: string): boolean => health.coolingMs(name) > 0;
  const upstreamStates = (): Readonly<Record<string, UpstreamState>> =>
    Object.fromEntries(
      Object.keys(config.upstreams).map((name) => [name, isCooling(name) ? 'open' : health.state(name)]),
    );
  return {
    config,
    models,
    upstreamStates,
    router: createPublicRouter(
      ports,
      {
        ...store,
        keys: foundation.directory,
        readLimiter: foundation.readLimiter,
        readTurns: foundation.readTurns,
        inFlight,
        defaults,
      },
      { paths: passthrough, middlewares: foundation.passthroughMiddlewares },
      foundation.prepare,
      config.server.maxBody,
    ),
    admin: createAdminRouter({
      token: adminToken,
      prepare: foundation.prepare,
      keys: { keys, defaults, countInFlight: (keyId) => inFlight.count(keyId) },
      records: {
        listRecords: (filter, limit, cursor) => store.listRecords(filter, limit, cursor),
        running: () => inFlight.list(),
        cancel: (requestId) => inFlight.cancel(requestId),
      },
      maintenance: foundation.maintenance,
      metrics,
      onFault: log.fault,
      upstreamStates: () =>
        Object.fromEntries(
          Object.entries(upstreamStates()).map(([name, state]) => [
            name,
            isCooling(name) ? 'asked for a pause' : shownStates[state],
          ]),
        ),
      notReady: () => whyNotReady(ports, foundation),
    }),
    stopBackgroundWork: stopProbes,
    async close() {
      stopProbes();
      await upstreams.close();
    },
  };
}

async function whyNotReady(
  { inFlight, models }: Ports,
  { writes, engine }: ProcessServices,
): Promise<string | null> {
  if (!inFlight.accepting) return 'draining';
  const writeFault = await writes.fault();
  if (writeFault !== null) return `the database does not take writes: ${writeFault}`;
  if (engine.impaired !== null) return engine.impaired;
  return isRefusal(await models.list()) ? 'no list of models from the upstream yet' : null;
}

/** A list of models outlives its config where the next one would ask for it in the same way. */
function previousModelsOf(
  config: Config,
  { startedAt }: ProcessServices,
  before: ConfigServices | null,
): PreviousModels {
  const { models, upstreams } = config;
  const sameSource =
    before !== null &&
    isDiscovered(models) &&
    isDeepStrictEqual(models, before.config.models) &&
    isDeepStrictEqual(upstreams[models.from], before.config.upstreams[models.from]);
  return { lastGood: sameSource ? before.models.lastGood() : null, startedAtSeconds: startedAt };
}
