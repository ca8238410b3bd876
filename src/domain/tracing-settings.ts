/** The OpenTelemetry variables that the gateway reads itself; the SDK reads the others. */
export interface TracingSettings {
  /** The collector's address and the variable that has it; `null` for the exporter's default. The exporter reads it itself. */
  readonly endpoint: { readonly name: string; readonly url: string } | null;
  /** `OTEL_TRACES_EXPORTER`. */
  readonly exporter: string;
  /** `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL` or `OTEL_EXPORTER_OTLP_PROTOCOL`. */
  readonly protocol: string | undefined;
  /** `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. */
  readonly sampler: string | undefined;
  readonly samplerArgument: string | undefined;
}
