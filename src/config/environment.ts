import type { TracingSettings } from '../domain/tracing-settings.ts';

/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What Kubernetes sets `TEXTGATE_PORT` to beside a service that is named `textgate`. */
const serviceAddress = /^(?:tcp|udp|sctp):\/\//;

/**
 * A variable's value. A blank one counts as not set, because compose files pass unset variables on as blank; and so does
 * the address of a Kubernetes service, which no operator has set.
 */
export function readVariable(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' || (name.endsWith('_PORT') && serviceAddress.test(value ?? '')) ? undefined : value;
}

/** Whether streams take the fast road: unless `TEXTGATE_FAST_ROAD` is `off`, to find out whether it is at fault. */
export function readFastRoad(environment: Environment = process.env): boolean {
  return readVariable(environment, 'TEXTGATE_FAST_ROAD')?.toLowerCase() !== 'off';
}

/** The tracing settings in OpenTelemetry's own variables; `null` when no endpoint is set, or the SDK is disabled. */
export function readTracingSettings(environment: Environment = process.env): TracingSettings | null {
  const endpoint = readVariable(environment, 'OTEL_EXPORTER_OTLP_ENDPOINT');
  const isDisabled = readVariable(environment, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  if (endpoint === undefined || isDisabled) return null;
  return {
    endpoint,
    sampler: readVariable(environment, 'OTEL_TRACES_SAMPLER'),
    samplerArgument: readVariable(environment, 'OTEL_TRACES_SAMPLER_ARG'),
  };
}
