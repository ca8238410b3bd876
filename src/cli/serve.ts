import { readFileSync, statSync, watchFile } from 'node:fs';
import { adminTokenFile, ensureAdminToken } from '../config/admin-token.ts';
import { ConfigError } from '../config/load.ts';
import { readLogSettings } from '../config/log-settings.ts';
import type { Config } from '../config/schema/schema.ts';
import type { ComposedGateway } from '../gateway.ts';
import { openStandardStream } from '../telemetry/log-destination.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { describeError } from './describe-error.ts';
import { environmentNotices } from './environment-notices.ts';
import { describeStartError } from './describe-start-error.ts';
import { describeList, firstRequest, greeting, usesDemo } from './greeting.ts';
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
    for (const notice of environmentNotices(process.env, options, textOf(options.config)))
      stderr.write(`${notice}\n`);
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
    const hasActiveKey = isNew || (await gateway.hasActiveKey());
    const isDemo = options.config === undefined && usesDemo(config);
    stderr.write(
      `${greeting({ url, adminUrl, declared: Object.keys(config.keys), key, hasActiveKey, isDemo })}\n`,
    );
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

/** Whether the log shows a person why the list of models can't be fetched. */
function isReadInLog({ logLevel, logFormat }: ReturnType<typeof readLogSettings>): boolean {
  return logLevel !== 'silent' && (logFormat ?? (process.stdout.isTTY ? 'text' : 'json')) === 'text';
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

/** The text of a config file; empty if it can't be read, which the start reports, or only once, as a pipe. */
function textOf(file: string | undefined): string {
  try {
    return file !== undefined && statSync(file).isFile() ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  }
}
