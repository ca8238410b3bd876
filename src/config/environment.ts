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

/** A variable of the environment, for the help text, the documentation and the search for misspelt ones. */
interface EnvironmentVariable {
  readonly name: string;
  /** What it sets, and its default: at most 66 characters, so that a line of the help fits a terminal. */
  readonly meaning: string;
}

/** All variables that `textgate serve` reads. */
export const serveVariables: readonly EnvironmentVariable[] = [
  { name: 'TEXTGATE_CONFIG', meaning: 'the config file, like --config' },
  {
    name: 'TEXTGATE_UPSTREAM_URL',
    meaning: 'without a config file: the upstream; default: a built-in demo',
  },
  { name: 'TEXTGATE_UPSTREAM_API_KEY', meaning: 'the key of that upstream' },
  { name: 'TEXTGATE_HOST', meaning: 'the address for clients, like --host' },
  { name: 'TEXTGATE_PORT', meaning: 'the port for clients, like --port' },
  { name: 'TEXTGATE_ADMIN_HOST', meaning: 'the address for operators, like --admin-host' },
  { name: 'TEXTGATE_ADMIN_PORT', meaning: 'the port for operators, like --admin-port' },
  {
    name: 'TEXTGATE_ADMIN_TOKEN',
    meaning: 'the admin token; default: generated in a file that the start names',
  },
  { name: 'TEXTGATE_ADMIN_READ_ONLY_TOKEN', meaning: 'a token that reads /admin only; default: none' },
  { name: 'TEXTGATE_SHUTDOWN_DELAY', meaning: 'how long requests are taken after SIGTERM; default: 0s' },
  { name: 'TEXTGATE_STORAGE_URL', meaning: 'the database; default: sqlite:data/textgate.db' },
  { name: 'TEXTGATE_KEY', meaning: 'an API key for clients; default: one is generated' },
  { name: 'TEXTGATE_KEY_FILE', meaning: 'the file of that key' },
  { name: 'TEXTGATE_LOG', meaning: 'silent, warn, info (default) or debug' },
  { name: 'TEXTGATE_LOG_FORMAT', meaning: 'json, or text: aligned lines, the default on a terminal' },
  { name: 'TEXTGATE_FAST_PATH', meaning: 'off has every frame of a stream parsed, to find a fault' },
];

/** All variables that only commands read: those for operators, and `textgate say`. */
export const commandVariables: readonly EnvironmentVariable[] = [
  { name: 'TEXTGATE_ADMIN_URL', meaning: 'the admin listener that commands call' },
  { name: 'TEXTGATE_URL', meaning: 'the address for clients that `textgate say` calls' },
  { name: 'TEXTGATE_API_KEY', meaning: 'the key that `textgate say` presents' },
  { name: 'TEXTGATE_COMMAND_PROXY', meaning: 'the HTTP proxy to the gateway; default: none is used' },
];
