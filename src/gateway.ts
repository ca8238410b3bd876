import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Router } from 'express';
import { systemClock } from './composition/clock.ts';
import { createProcessServices } from './composition/process-services.ts';
import { createListeners } from './composition/listeners.ts';
import { createConfigServices } from './composition/config-services.ts';
import type { ConfigServices } from './composition/config-services.ts';
import { checkConfig } from './config/load.ts';
import type { Config, ConfigInput } from './config/schema.ts';
import type { KeySettings } from './domain/api-key.ts';
import type { Clock } from './domain/ports/clock.ts';
import type { UpstreamHealth } from './domain/upstream-health.ts';
import type { IssuedKey } from './operations/manage-keys.ts';
import { awaitSettlements, drain, interruptForCrash } from './pipeline/drain.ts';
import { isRefusal } from './shared/errors.ts';
import { createLog } from './telemetry/logger.ts';

export type { ConfigInput } from './config/schema.ts';

/** A running gateway. Its routers work mounted in any Express 5 app; `listen` gives them servers of their own. */
export interface Gateway {
  /** The paths under `/v1`. */
  readonly router: Router;
  /** `/metrics`, the probes and `/admin`: not for the public. */
  readonly admin: Router;
  /** Opens both listeners of the config; resolves with their addresses once the database is open. */
  listen(): Promise<{ readonly url: string; readonly adminUrl: string }>;
  /** Makes a key. Its `secret` is what clients present, and is shown only here. */
  createKey(name: string, settings?: KeySettings): Promise<IssuedKey>;
  hasKeys(): Promise<boolean>;
  /** The names of the models on offer now; none while an upstream that lists them is away. */
  modelNames(): Promise<readonly string[]>;
  /**
   * Puts another config in the place of the one in force, whole or not at all: throws `ConfigError` if it has faults.
   * Requests that run go on under the old one. Returns the sections that differ and that only a restart changes.
   */
  reload(input: ConfigInput): readonly string[];
  /**
   * Resolves with the reason when the database is lost, as when its file was deleted: new requests are refused from then
   * on. The process should call `close`, which saves the database, and end with an error.
   */
  readonly failed: Promise<Error>;
  /** Stops accepting, lets running requests end within the drain time, then closes everything, the log last. */
  close(): Promise<void>;
}

/** What a process chooses beside its config. */
export interface GatewayOptions {
  /** The bearer token of `/admin`; made up, and so known to nobody, when it is left out here and in the config. */
  readonly adminToken?: string;
  readonly logLevel?: 'info' | 'warn' | 'silent';
  /** Where the log goes, a line at a time; standard output when it is left out. */
  readonly logDestination?: { write(line: string): void };
  readonly clock?: Clock;
}

/** A gateway whose config is checked already: what a process with a config file of its own works with. */
export interface ComposedGateway extends Gateway {
  /** Puts a checked config into force. */
  replaceConfig(config: Config): readonly string[];
  /** Notes that a config could not be put into force; the old one stays. */
  reloadFailed(error: unknown): void;
  /**
   * Ends at once because of an error that nothing caught: logs it, ends every running answer with an error, settles what
   * was delivered and closes everything. Works during `close`, too.
   */
  crash(error: unknown): Promise<void>;
  /** How long `close` may take at most before something hangs, in milliseconds. */
  readonly closeLimitMs: () => number;
}

/** Builds a gateway from a config as it would stand in a YAML file. Throws `ConfigError` if it has faults. */
export function createGateway(input: ConfigInput, options: GatewayOptions = {}): Gateway {
  return composeGateway(checkConfig(input, 'the config'), options);
}

/** How long what is no request, such as a list of models, may still run over a replaced config, in milliseconds. */
const retireGraceMs = 5_000;

/** What closing may take beside the drain time, in milliseconds: settlements, the database, traces and the log. */
const closeGraceMs = 20_000;

/** What can't change while the process runs: it holds ports and files. */
const fixedSections = ['admin', 'storage'] as const;

/** The composition root: the one place that knows every room. */
export function composeGateway(config: Config, options: GatewayOptions): ComposedGateway {
  const clock = options.clock ?? systemClock;
  const log = createLog(options.logLevel ?? 'warn', clock, options.logDestination);
  const foundation = createProcessServices(config, clock, log, {
    lowBalanceNanos: () => service.config.limits.lowBalance,
    upstreamStates: () => service.upstreamStates(),
  });
  const { store, keys, inFlight, metrics, health } = foundation;
  const adminToken = options.adminToken ?? config.admin.token ?? randomUUID();
  let service: ConfigServices = createConfigServices(config, foundation, adminToken, null);
  /** Services that were replaced, and over which something may still run. */
  const replaced = new Set<ConfigServices>();

  const router = Router().use((...call) => service.router(...call));
  const admin = Router().use((...call) => service.admin(...call));
  const listeners = createListeners(router, admin, foundation, () => service.config);

  let closing: Promise<void> | null = null;
  const closeWhenIdle = async (before: ConfigServices): Promise<void> => {
    await Promise.all(inFlight.all().map((request) => inFlight.ended(request)));
    await new Promise<void>((resolve) => void clock.schedule(retireGraceMs, resolve));
    if (!replaced.delete(before)) return;
    await before.close();
  };
  const replaceConfig = (next: Config): readonly string[] => {
    if (closing !== null) throw new Error('the gateway is closing');
    const before = service;
    service = createConfigServices(next, foundation, adminToken, before);
    forgetHealth(health, before.config.upstreams, next.upstreams);
    before.stopBackgroundWork();
    replaced.add(before);
    void closeWhenIdle(before);
    metrics.configReloaded('ok');
    return changedSections(config, next);
  };

  return {
    router,
    admin,
    failed: foundation.engine.lost,
    createKey: (name, settings) => keys.issue(name, settings),
    hasKeys: async () => (await store.countKeys()) > 0,
    async modelNames() {
      const offered = await service.models.catalogue.list();
      return isRefusal(offered) ? [] : offered.map(({ id }) => id);
    },
    async listen() {
      // The tables for counting take a third of a second of the main thread to load: now, while the database opens, it
      // is in nobody's way. Counting that fails is guessed, so a failure here stops nothing.
      const counting = foundation.tokens.count('').catch(() => {});
      await foundation.ready();
      await counting;
      return listeners.open(service.config);
    },
    reload: (input) => replaceConfig(checkConfig(input, 'the config')),
    replaceConfig,
    reloadFailed(error) {
      metrics.configReloaded('failed');
      log.fault('the config was not reloaded: the one before stays in force', error);
    },
    close: () => (closing ??= close(() => drain(inFlight, service.config.server.drain, clock))),
    async crash(error) {
      log.crash(error);
      const ended = interruptForCrash(inFlight, clock);
      await (closing ??= close(() => ended));
    },
    closeLimitMs: () => service.config.server.drain + closeGraceMs,
  };

  async function close(endRequests: () => Promise<void>): Promise<void> {
    try {
      listeners.stopAccepting();
      await endRequests();
      listeners.cutPublic();
      await awaitSettlements(inFlight, clock);
      listeners.close();
      await Promise.all([service, ...replaced].map((one) => one.close()));
      replaced.clear();
      await foundation.close();
    } finally {
      await log.close();
    }
  }
}

/** The sections that differ from those of the start and need another one; of the public listener, only where it is. */
function changedSections(before: Config, after: Config): readonly string[] {
  const fixed = fixedSections.filter((name) => !isDeepStrictEqual(before[name], after[name]));
  const moved = before.server.host !== after.server.host || before.server.port !== after.server.port;
  return moved ? [...fixed, 'server'] : fixed;
}

/** An upstream with another address or key is another one: what the old one did is not held against it. */
function forgetHealth(health: UpstreamHealth, before: Config['upstreams'], after: Config['upstreams']): void {
  for (const [name, { probe, ...old }] of Object.entries(before)) {
    const { probe: newProbe, ...next } = after[name] ?? {};
    if (!isDeepStrictEqual(old, next)) health.forget(name);
    else if (!isDeepStrictEqual(probe, newProbe)) health.forgetProbes(name);
  }
}
