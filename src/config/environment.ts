import type { TracingSettings } from '../domain/ports/telemetry.ts';

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

/** Whether streams take the fast path: unless `TEXTGATE_FAST_PATH` is `off`, to find out whether it is at fault. */
export function readFastPath(environment: Environment = process.env): boolean {
  return readVariable(environment, 'TEXTGATE_FAST_PATH')?.toLowerCase() !== 'off';
}

/**
 * The tracing settings in OpenTelemetry's own variables; `null` when the SDK is disabled, the exporter of traces is `none`, or
 * neither an exporter nor an endpoint is set.
 */
export function readTracingSettings(environment: Environment = process.env): TracingSettings | null {
  const read = (name: string): string | undefined => readVariable(environment, name);
  const endpoint = endpointVariables.flatMap((name) => {
    const url = read(name);
    return url === undefined ? [] : [{ name, url }];
  })[0];
  const exporter = read('OTEL_TRACES_EXPORTER')?.toLowerCase();
  const isDisabled = exporter === 'none' || read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  if ((endpoint === undefined && exporter === undefined) || isDisabled) return null;
  return {
    endpoint: endpoint ?? null,
    exporter: exporter ?? 'otlp',
    protocol: read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL'),
    sampler: read('OTEL_TRACES_SAMPLER'),
    samplerArgument: read('OTEL_TRACES_SAMPLER_ARG'),
  };
}

/** The variables of the collector's address; that of traces alone counts before the one of all signals. */
const endpointVariables = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
