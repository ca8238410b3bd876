/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value; one that is set to nothing counts as not set, as compose files leave them. */
export function readVariable(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' ? undefined : value;
}

/** The environment of this process. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Whether tracing is switched on, by OpenTelemetry's own variables: an endpoint is set, and the SDK is not disabled. */
export function isTracingEnabled(environment: Environment): boolean {
  const isDisabled = readVariable(environment, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  return !isDisabled && readVariable(environment, 'OTEL_EXPORTER_OTLP_ENDPOINT') !== undefined;
}
