import type { Config } from '../../config/schema/schema.ts';
import { originOf } from '../../domain/diagnosis/call-target.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { DoctorRun, RunDoctor } from '../../http/admin/upstreams.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { nearestName } from '../../shared/nearest-name.ts';
import { gatewayClosed } from '../../http/answers/prepare-answers.ts';
import type { NameSettings, Surroundings } from './upstreams.ts';

/** How long one call of an examination may take, in milliseconds: as long as that of `textgate doctor`. */
const callMs = 30_000;

/** How long a whole examination may take, in milliseconds: ten slow calls of a model on a CPU. */
const runMs = 300_000;

/**
 * Runs at most one examination of each upstream at a time in this process, which a reload leaves as they are. The code for it is
 * loaded with the first one.
 */
export function createDoctorRuns(clock: Clock, nameSettings: NameSettings) {
  const running = new Set<string>();
  const closing = new AbortController();
  return {
    /** Examines an upstream of a config as `textgate doctor` does. */
    async run(
      name: string,
      config: Config,
      surroundings: Surroundings,
      { model, signal: left, onCheck }: DoctorRun,
    ): ReturnType<RunDoctor> {
      const url = Object.hasOwn(config.upstreams, name) ? config.upstreams[name]?.url : undefined;
      if (url === undefined) return unknownUpstream(name, Object.keys(config.upstreams));
      if (closing.signal.aborted) return gatewayClosed();
      if (running.has(name)) return alreadyRuns(name);
      running.add(name);
      const late = new AbortController();
      const cancel = clock.schedule(runMs, () => late.abort());
      try {
        const { examineUpstream, hidePaths } = await import('./doctor.ts');
        const options = { model, callMs, triesWrongKey: false, triesResponses: false, nameSettings };
        const report = await examineUpstream(name, config, options, {
          ...surroundings,
          clock,
          signal: AbortSignal.any([left, late.signal, closing.signal]),
          onChecks: (checks) => hidePaths(checks, url).forEach(onCheck),
        });
        return { ...report, url: originOf(url), checks: hidePaths(report.checks, url) };
      } catch (error) {
        if (left.aborted) return null;
        if (closing.signal.aborted) return gatewayClosed();
        if (late.signal.aborted) return tookTooLong(name);
        throw error;
      } finally {
        cancel();
        running.delete(name);
      }
    },
    /** Ends all examinations. */
    stop: async () => closing.abort(),
  };
}

function unknownUpstream(name: string, known: readonly string[]): Refusal {
  const nearest = nearestName(name, known);
  return refuse(
    'upstream_not_found',
    `The config has no upstream of this name${nearest === null ? '.' : `; did you mean '${nearest}'?`}`,
  );
}

function alreadyRuns(name: string): Refusal {
  return refuse('doctor_is_running', `The upstream '${name}' is being checked already: wait for that run.`);
}

function tookTooLong(name: string): Refusal {
  const message = `The checks of the upstream '${name}' took more than ${runMs / 60_000} minutes and were stopped.`;
  return refuse('upstream_timeout', message);
}
