import { watchFile } from 'node:fs';
import { adminTokenFile, ensureAdminToken } from '../config/admin-token.ts';
import { defaultAdminPort, defaultHost } from '../config/default-addresses.ts';
import { ConfigError } from '../config/load.ts';
import { readLogSettings } from '../config/log-settings.ts';
import type { Config } from '../config/schema/schema.ts';
import type { ComposedGateway } from '../gateway.ts';
import type { FetchedModelList } from '../models/model-discovery.ts';
import { openStandardStream } from '../telemetry/log-destination.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { describeError } from './describe-error.ts';
import { describeStartError } from './describe-start-error.ts';
import { stopEndingOnEarlySignal } from './early-signals.ts';
import { loadServeConfig, settingNamesFor } from './serve-config.ts';
import type { ServeOptions } from './serve-config.ts';
import { maxColumns, wrap } from './output.ts';
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
    config = loadServeConfig(options, process.env);
    const adminToken =
      config.admin.token ?? ensureAdminToken(adminTokenFile, (line) => stderr.write(`${line}\n`));
    // Loaded here, so that all other commands start without the gateway's packages.
    const { composeGateway } = await import('../gateway.ts');
    const log = readLogSettings(process.env);
    const gateway = composeGateway(config, { adminToken, ...log }, settingNamesFor(options));
    isShuttingDown = endOnSignalOrFault(gateway, stderr);
    stopEndingOnEarlySignal();
    if (options.config !== undefined) reloadOnChange(gateway, options.config, options, stderr);
    const { url, adminUrl } = await gateway.listen();
    const isNew = !(await gateway.hasKeys());
    const key = isNew ? (await gateway.keys.create({ name: 'first key' })).key : null;
    stderr.write(`${greeting({ url, adminUrl, declared: Object.keys(config.keys), key })}\n`);
    // After the greeting: a list that can't be fetched takes a while, and its cause should be read last.
    const [model] = await gateway.modelNames();
    if (key !== null && model !== undefined) stderr.write(`${firstRequest(key, model, reachable(url))}\n`);
    const list = await gateway.fetchModelList();
    if (list !== null) stderr.write(`${describeList(list, isReadInLog(log))}\n`);
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
  // The lines below the first one are commands, which are pasted whole.
  const [first = '', ...more] = reason.split('\n');
  return [...wrapped(`textgate can't start: ${first}`), ...more].join('\n');
}

/** A sentence on lines of at most 100 columns. */
function wrapped(sentence: string): readonly string[] {
  return wrap(sentence, maxColumns - 2).map((line, index) => (index === 0 ? line : `  ${line}`));
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
      gateway.reloadFailed(error);
    }
  };
  process.on('SIGHUP', reload);
  watchFile(file, { interval: watchMs, persistent: false }, (now, before) => {
    if (now.mtimeMs !== before.mtimeMs) reload();
  });
}

/** What the greeting of a started gateway says. */
interface StartedGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** The names of the keys that the config and the environment declare. */
  readonly declared: readonly string[];
  /** The first key, if it was made now. */
  readonly key: string | null;
}

function greeting({ url, adminUrl, declared, key }: StartedGateway): string {
  const lines = [`textgate serves ${url}/v1 (admin: ${adminUrl})`];
  const usual = `http://${defaultHost}:${defaultAdminPort}`;
  const where = adminUrl === usual ? '' : `TEXTGATE_ADMIN_URL=${reachable(adminUrl)} `;
  if (declared.length > 0) lines.push(`keys declared: ${declared.join(', ')}`);
  if (key === null) lines.push(`create another key with: ${where}${command} keys create <name>`);
  else lines.push(...firstSteps(key, reachable(url)));
  return lines.join('\n');
}

/** Whether the log shows a person why the list of models can't be fetched. */
function isReadInLog({ logLevel, logFormat }: ReturnType<typeof readLogSettings>): boolean {
  return logLevel !== 'silent' && (logFormat ?? (process.stdout.isTTY ? 'text' : 'json')) === 'text';
}

/** What is said of the models that the upstream lists; `isLogged` leaves out a problem that the log shows already. */
function describeList({ upstream, count, problem }: FetchedModelList, isLogged: boolean): string {
  const found =
    count > 0 || problem === null
      ? `models: ${count} of ${upstream}`
      : `models: none yet; the list of ${upstream} is fetched again for later requests`;
  const why = problem === null || isLogged ? [] : wrap(problem, maxColumns - 2);
  return [found, ...why.map((line) => `  ${line}`)].join('\n');
}

/** The first key, and how to give it to a client. */
function firstSteps(secret: string, url: string): readonly string[] {
  return [
    '',
    'This is your first key. It is shown only once:',
    `  ${secret}`,
    '',
    'Point any OpenAI client at it:',
    `  export OPENAI_BASE_URL=${url}/v1`,
    `  export OPENAI_API_KEY=${secret}`,
    '',
  ];
}

/** A command for the first request, ready to be pasted into a shell. */
function firstRequest(secret: string, model: string, url: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Say hello' }] });
  return [
    'Or try it:',
    `  curl -N ${url}/v1/chat/completions -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '${body}'`,
    '',
  ].join('\n');
}
