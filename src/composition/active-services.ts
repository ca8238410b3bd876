import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/schema/schema.ts';
import { createConfigServices } from './config-services.ts';
import type { ConfigServices, ReadConfig } from './config-services.ts';
import { changedFixedSettings } from './fixed-settings.ts';
import type { ProcessServices } from './process-services.ts';
import { withoutLimits } from './upstreams/kept-models.ts';
import { forgetUnserved } from './upstreams/models.ts';
import { readUpstreamFiles } from './upstreams/upstream-files.ts';

/** How long calls outside a request, such as a list of models, may still run over a replaced config, in milliseconds. */
const retireGraceMs = 5_000;

export type ActiveServices = ReturnType<typeof createActiveServices>;

/** The services of the config in force, and those of replaced configs whose requests still run; `first` is put into force. */
export function createActiveServices(first: ReadConfig, processServices: ProcessServices) {
  const { clock, inFlight } = processServices;
  const { health } = processServices.upstreams;
  let current = createConfigServices(first, processServices, null);
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
      forgetUnserved(current.models, Object.keys(current.config.upstreams), health);
      void services.close();
    };
    replaced.set(services, clock.schedule(retireGraceMs, closeLate));
  };
  return {
    get current(): ConfigServices {
      return current;
    },
    /** Puts another config into force. Returns the settings that differ and that only a restart changes. */
    replace(next: Config): readonly string[] {
      const previous = current;
      const read = { config: next, firstFiles: readUpstreamFiles(next, previous.files) };
      current = createConfigServices(read, processServices, previous);
      processServices.attach(current);
      forgetChanged(processServices, previous.config.upstreams, next.upstreams);
      forgetUnserved(current.models, Object.keys(next.upstreams), health);
      previous.stopBackgroundWork();
      replaced.set(previous, () => {});
      void closeWhenIdle(previous);
      return changedFixedSettings(first.config, next);
    },
    /** Closes the services of every config; calls that still run over them break. */
    async close(): Promise<void> {
      // Attempts that break with the connections to receivers would count as failed.
      await processServices.upstreams.events.stop();
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
  { upstreams }: ProcessServices,
  before: Config['upstreams'],
  after: Config['upstreams'],
): void {
  for (const [name, config] of Object.entries(before)) {
    const { probe, ...old } = withoutLimits(config);
    const { probe: newProbe, ...next }: Partial<typeof config> = withoutLimits(after[name] ?? {});
    if (!isDeepStrictEqual(old, next)) upstreams.forget(name);
    else if (!isDeepStrictEqual(probe, newProbe)) upstreams.health.forgetProbes(name);
  }
}
