/** The environment, as `process.env` gives it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable's value; one that is set to nothing counts as not set, as compose files leave them. */
export function readVariable(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === '' ? undefined : value;
}

/** Whether traces are wanted: the variables are OpenTelemetry's own, and so is the one that overrules them. */
export function wantsTraces(environment: Environment): boolean {
  const isDisabled = readVariable(environment, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  return !isDisabled && readVariable(environment, 'OTEL_EXPORTER_OTLP_ENDPOINT') !== undefined;
}
