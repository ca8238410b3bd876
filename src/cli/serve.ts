import { readFileSync, statSync, watchFile } from 'node:fs';
import { adminTokenFile, ensureAdminToken } from '../config/admin-token.ts';
import { defaultAdminPort, defaultHost } from '../config/default-addresses.ts';
import { ConfigError } from '../config/load.ts';
import { readLogSettings } from '../config/log-settings.ts';
import type { Config } from '../config/schema/schema.ts';
import type { ComposedGateway } from '../gateway.ts';
import type { FetchedModelList } from '../models/model-discovery.ts';
import { openStandardStream } from '../telemetry/log-destination.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { escapeControlCharacters } from '../shared/control-characters.ts';
import { describeError } from './describe-error.ts';
import { environmentNotices } from './environment-notices.ts';
import { describeStartError } from './describe-start-error.ts';
import { stopEndingOnEarlySignal } from './early-signals.ts';
import { maxColumns } from './output.ts';
import { loadServeConfig, settingNamesFor } from './serve-config.ts';
import type { ServeOptions } from './serve-config.ts';
import { reachable } from './reachable.ts';
import { serveCommand } from './serve-command.ts';
import { endOnSignalOrFault } from './shutdown.ts';

/** Starts the gateway, which then runs until a signal; exits with 1 if it can't start. */
export async function serve(options: ServeOptions): Promise<void> {
  const stderr = openStandardStream(
    process.stderr,
    (lines) => `textgate: ${lines} lines of standard error were dropped\n`,
  );
  let config: Config | null = null;
  let isShuttingDown: (() => boolean) | null = null;
  try {
    for (const notice of environmentNotices(process.env, options, textOf(options.config)))
      stderr.write(`${notice}\n`);
    config = loadServeConfig(options, process.env);
    const adminToken =
      config.admin.token ?? ensureAdminToken(adminTokenFile, (line) => stderr.write(`${line}\n`));
    // Loaded here, so that all other commands start without the gateway's packages.
    const { composeGateway } = await import('../gateway.ts');
    const gateway = composeGateway(
      config,
      { adminToken, ...readLogSettings(process.env) },
      settingNamesFor(options),
    );
    isShuttingDown = endOnSignalOrFault(gateway, stderr);
    stopEndingOnEarlySignal();
    if (options.config !== undefined) reloadOnChange(gateway, options.config, options, stderr);
    const { url, adminUrl } = await gateway.listen();
    stderr.write(
      `${await greeting(gateway, { url, adminUrl, config, isFromFile: options.config !== undefined })}\n`,
    );
    const list = await gateway.fetchModelList();
    if (list !== null) stderr.write(`${describeList(list)}\n`);
  } catch (error) {
    // A shutdown that began during the start makes the start fail, and then ends the process itself.
    if (isShuttingDown?.() === true) return;
    stderr.write(`${startFailure(error, config, options)}\n`);
    await stderr.flush(lastLinesMs);
    process.exit(1);
  }
}

function startFailure(error: unknown, config: Config | null, options: ServeOptions): string {
  if (error instanceof ConfigError) return error.message;
  const reason =
    config === null
      ? describeError(error)
      : describeStartError(error, {
          config,
          commandWith: (ports) => serveCommand({ ...options, ...ports }, process.env),
        });
  return `textgate can't start: ${reason}`;
}

/** How long a failed start waits for its last lines on standard error, in milliseconds. */
const lastLinesMs = 1_000;

/** How operators call the command: in a checkout, or from the package or image. */
const command = import.meta.url.endsWith('.ts') ? 'npm run textgate --' : 'textgate';

/** How often the config file is checked for changes, in milliseconds: polling finds every kind of replacement. */
const watchMs = 1_000;

/** Reloads the config file on SIGHUP and when it changes. A bad file is reported, and the old config stays active. */
function reloadOnChange(
  gateway: ComposedGateway,
  file: string,
  options: ServeOptions,
  stderr: LogDestination,
): void {
  const reload = (): void => {
    try {
      const restart = gateway.replaceConfig(loadServeConfig(options, process.env));
      const later =
        restart.length === 0 ? '' : `; these changes count from the next start on: ${restart.join(', ')}`;
      stderr.write(`config reloaded: ${file}${later}\n`);
    } catch (error) {
      gateway.reloadFailed(forRunningProcess(error, file));
    }
  };
  process.on('SIGHUP', reload);
  watchFile(file, { interval: watchMs, persistent: false }, (now, before) => {
    if (now.mtimeMs !== before.mtimeMs) reload();
  });
}

/** A running process never sees a variable that is set after its start. */
function forRunningProcess(error: unknown, file: string): unknown {
  if (!(error instanceof ConfigError)) return error;
  const problems = error.problems.map((problem) =>
    /environment variable .* is not set/.test(problem)
      ? `${problem}; a running process gets no new variables: set it and restart`
      : problem,
  );
  return new ConfigError(file, problems);
}

/** The addresses of a started gateway, for its greeting. */
interface StartedGateway {
  readonly url: string;
  readonly adminUrl: string;
  readonly config: Config;
  readonly isFromFile: boolean;
}

async function greeting(gateway: ComposedGateway, started: StartedGateway): Promise<string> {
  const lines = [`textgate serves ${started.url}/v1 (admin: ${started.adminUrl})`];
  const usual = `http://${defaultHost}:${defaultAdminPort}`;
  const where = started.adminUrl === usual ? '' : `TEXTGATE_ADMIN_URL=${reachable(started.adminUrl)} `;
  if (!started.isFromFile && isDemo(started.config))
    lines.push('models: demo (built in); set TEXTGATE_UPSTREAM_URL for a real server');
  const declared = Object.keys(started.config.keys).map(escapeControlCharacters);
  if (declared.length > 0) lines.push(`keys declared: ${declared.join(', ')}`);
  if (await gateway.hasKeys()) {
    const purpose = (await gateway.hasActiveKey())
      ? 'create another key with:'
      : 'no active key is left; create one with:';
    lines.push(withCommand(purpose, `${where}${command} keys create <name>`));
  } else {
    const [model = '<a name from /v1/models>'] = await gateway.modelNames();
    lines.push(
      ...firstSteps((await gateway.keys.create({ name: 'first key' })).key, model, reachable(started.url)),
    );
  }
  return lines.join('\n');
}

function isDemo({ upstreams }: Config): boolean {
  return Object.values(upstreams).every(({ url }) => url.protocol === 'demo:');
}

/** The text of a config file; empty if it can't be read, which the start reports, or only once, as a pipe. */
function textOf(file: string | undefined): string {
  try {
    return file !== undefined && statSync(file).isFile() ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  }
}

/** A command behind its purpose, or below it where one line would be too long. */
function withCommand(purpose: string, line: string): string {
  return purpose.length + 1 + line.length <= maxColumns ? `${purpose} ${line}` : `${purpose}\n  ${line}`;
}

/** A line about the models that the upstream lists. */
function describeList({ upstream, count, problem }: FetchedModelList): string {
  return problem === null ? `models: ${count} of ${upstream}` : `model list: ${problem}`;
}

/** Commands for the first request, ready to be pasted into a shell. */
function firstSteps(secret: string, model: string, url: string): readonly string[] {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Say hello' }] });
  return [
    '',
    'This is your first key. It is shown only once:',
    `  ${secret}`,
    '',
    'Try it:',
    `  curl -N ${url}/v1/chat/completions -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '${body}'`,
    '',
    'Or point any OpenAI client at it:',
    `  export OPENAI_BASE_URL=${url}/v1`,
    `  export OPENAI_API_KEY=${secret}`,
    '',
  ];
}
