import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { Sampler } from '@opentelemetry/sdk-trace';

/** Samplers by OpenTelemetry's names, which the SDK no longer reads by itself. */
const samplers: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
};

/** The sampler that `OTEL_TRACES_SAMPLER` names; its argument is a ratio from 0 to 1. */
export function chooseSampler(name = 'parentbased_always_on', argument = '1'): Sampler {
  const ratio = Number(argument);
  const create = Object.hasOwn(samplers, name) ? samplers[name] : undefined;
  if (create === undefined) throw new Error('OTEL_TRACES_SAMPLER is not the name of a sampler');
  if (!(ratio >= 0 && ratio <= 1)) throw new Error('OTEL_TRACES_SAMPLER_ARG is not a ratio from 0 to 1');
  return create(ratio);
}
