/** The OpenTelemetry variables that the gateway reads itself; the SDK reads the others. */
export interface TracingSettings {
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector's address. */
  readonly endpoint: string;
  /** `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. */
  readonly sampler: string | undefined;
  readonly samplerArgument: string | undefined;
}
