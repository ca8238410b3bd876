import { watchFile } from 'node:fs';
import type { Command } from 'commander';
import { adminTokenFile, ensureAdminToken } from '../config/admin-token.ts';
import { readVariable } from '../config/environment.ts';
import { ConfigError, environmentConfig, loadConfigFile } from '../config/load.ts';
import { defaultAdminPort, defaultHost } from '../config/schema.ts';
import type { ComposedGateway, Gateway } from '../gateway.ts';
import { openStandardStream } from '../telemetry/log-destination.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { endOnSignalOrFault } from './shutdown.ts';
import { describeError } from './describe-error.ts';

/** The environment variables, for the help text. */
const environmentHelp = `
Environment:
  TEXTGATE_CONFIG                            the config file, like --config
  TEXTGATE_UPSTREAM_URL, _UPSTREAM_API_KEY   without a config file: the upstream and its key; default: a built-in demo
  TEXTGATE_HOST, TEXTGATE_PORT               the address for clients, unless the config sets it
  TEXTGATE_ADMIN_HOST, _ADMIN_PORT           the address for operators, unless the config sets it
  TEXTGATE_ADMIN_TOKEN                       the admin token; default: generated in ${adminTokenFile}
`;

/** Adds `textgate serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('start the gateway')
    .option(
      '-c, --config <file>',
      'a YAML config file; without one, environment variables configure the gateway',
      readVariable(process.env, 'TEXTGATE_CONFIG'),
    )
    .addHelpText('after', environmentHelp)
    .action(serve);
}

async function serve({ config: file }: { config?: string }): Promise<void> {
  const stderr = openStandardStream(
    process.stderr,
    (lines) => `textgate: ${lines} lines of standard error were dropped\n`,
  );
  try {
    const config = file === undefined ? environmentConfig(process.env) : loadConfigFile(file, process.env);
    const adminToken =
      config.admin.token ?? ensureAdminToken(adminTokenFile, (line) => stderr.write(`${line}\n`));
    // Loaded here, so that all other commands start without the gateway's packages.
    const { composeGateway } = await import('../gateway.ts');
    const gateway = composeGateway(config, { adminToken, logLevel: 'info' });
    endOnSignalOrFault(gateway, stderr);
    if (file !== undefined) reloadOnChange(gateway, file, stderr);
    const { url, adminUrl } = await gateway.listen();
    stderr.write(`${await greeting(gateway, { url, adminUrl, tryOut: file === undefined })}\n`);
  } catch (error) {
    stderr.write(
      `${error instanceof ConfigError ? error.message : `textgate can't start: ${describeError(error)}`}\n`,
    );
    await stderr.flush(lastLinesMs);
    process.exit(1);
  }
}

/** How long a failed start waits for its last lines on standard error, in milliseconds. */
const lastLinesMs = 1_000;

/** How operators call the command: in a checkout, or from the package or image. */
const command = import.meta.url.endsWith('.ts') ? 'npm run textgate --' : 'textgate';

/** How often the config file is checked for changes, in milliseconds: polling finds every kind of replacement. */
const watchMs = 1_000;

/** Reloads the config file on SIGHUP and when it changes. A bad file is reported, and the old config stays active. */
function reloadOnChange(gateway: ComposedGateway, file: string, stderr: LogDestination): void {
  const reload = (): void => {
    try {
      const restart = gateway.replaceConfig(loadConfigFile(file, process.env));
      stderr.write(
        `config reloaded: ${file}${restart.map((name) => `; ${name} needs a restart`).join('')}\n`,
      );
    } catch (error) {
      gateway.reloadFailed(error);
    }
  };
  process.on('SIGHUP', reload);
  watchFile(file, { interval: watchMs, persistent: false }, (now, before) => {
    if (now.mtimeMs !== before.mtimeMs) reload();
  });
}

/** The addresses of a started gateway, for its greeting. */
interface StartedGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** Whether the gateway was started without a config file: then its first key is created at the start. */
  readonly tryOut: boolean;
}

async function greeting(gateway: Gateway, started: StartedGateway): Promise<string> {
  const lines = [`textgate serves ${started.url}/v1 (admin: ${started.adminUrl})`];
  const usual = `http://${defaultHost}:${defaultAdminPort}`;
  const where = started.adminUrl === usual ? '' : `TEXTGATE_ADMIN_URL=${reachable(started.adminUrl)} `;
  if (await gateway.hasKeys()) lines.push(`create another key with: ${where}${command} keys create <name>`);
  else if (!started.tryOut) lines.push(`create the first key with: ${where}${command} keys create <name>`);
  else {
    const [model = '<a name from /v1/models>'] = await gateway.modelNames();
    lines.push(
      ...firstSteps((await gateway.keys.create({ name: 'first key' })).key, model, reachable(started.url)),
    );
  }
  return lines.join('\n');
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

/** The address at which this machine reaches a listener: the loopback one for a listener on all interfaces. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
