import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/schema/schema.ts';
import type { AdminAccess } from '../http/admin/access.ts';
import { createConfigServices } from './config-services.ts';
import type { ConfigServices, ReadConfig } from './config-services.ts';
import { changedFixedSettings } from './fixed-settings.ts';
import type { ProcessServices } from './process-services.ts';
import { forgetUnserved } from './upstreams/health-states.ts';
import { readUpstreamFiles } from './upstreams/upstream-files.ts';
import { withoutLimits } from './upstreams/same-upstream.ts';

/** How long calls outside a request, such as a list of models, may still run over a replaced config, in milliseconds. */
const retireGraceMs = 5_000;

/** The services of the config in force, and those of replaced configs whose requests still run. */
export interface ActiveServices {
  readonly current: ConfigServices;
  /** Puts another config into force. Returns the settings that differ and that only a restart changes. */
  replace(next: Config): readonly string[];
  /** Closes the services of every config; calls that still run over them break. */
  close(): Promise<void>;
}

/** Puts the first config of the process into force. */
export function createActiveServices(
  first: ReadConfig,
  processServices: ProcessServices,
  access: AdminAccess,
): ActiveServices {
  const { clock, inFlight } = processServices;
  let current = createConfigServices(first, processServices, access, null);
  processServices.attach(current);
  /** The services of replaced configs, each with the function that cancels its wait. */
  const replaced = new Map<ConfigServices, () => void>();

  const closeWhenIdle = async (services: ConfigServices): Promise<void> => {
    const requestsEnded = inFlight.all().map((request) => inFlight.ended(request));
    // An attempt that breaks with its connection would count as failed, although its receiver may have taken the event.
    await Promise.all([...requestsEnded, services.attemptsEnded()]);
    if (!replaced.has(services)) return;
    const closeLate = (): void => {
      replaced.delete(services);
      // Its last requests may have been for models that are served no more.
      forgetUnserved(current.models, Object.keys(current.config.upstreams), processServices.health);
      void services.close();
    };
    replaced.set(services, clock.schedule(retireGraceMs, closeLate));
  };
  return {
    get current() {
      return current;
    },
    replace(next) {
      const previous = current;
      const read = { config: next, firstFiles: readUpstreamFiles(next, previous.files) };
      current = createConfigServices(read, processServices, access, previous);
      processServices.attach(current);
      forgetChanged(processServices, previous.config.upstreams, next.upstreams);
      forgetUnserved(current.models, Object.keys(next.upstreams), processServices.health);
      previous.stopBackgroundWork();
      replaced.set(previous, () => {});
      void closeWhenIdle(previous);
      return changedFixedSettings(first.config, next);
    },
    async close() {
      // Attempts that break with the connections to receivers would count as failed.
      await processServices.events.stop();
      const all = [current, ...replaced.keys()];
      for (const cancel of replaced.values()) cancel();
      replaced.clear();
      await Promise.all(all.map((services) => services.close()));
    },
  };
}

/**
 * A changed address or key makes it another upstream: failures of the old one must not count against it, and limits that the
 * old one reported must not hold for it.
 */
function forgetChanged(
  { health, forget }: Pick<ProcessServices, 'health' | 'forget'>,
  before: Config['upstreams'],
  after: Config['upstreams'],
): void {
  for (const [name, config] of Object.entries(before)) {
    const { probe, ...old } = withoutLimits(config);
    const { probe: newProbe, ...next }: Partial<typeof config> = withoutLimits(after[name] ?? {});
    if (!isDeepStrictEqual(old, next)) forget(name);
    else if (!isDeepStrictEqual(probe, newProbe)) health.forgetProbes(name);
  }
}
