import { watchFile } from 'node:fs';
import type { Command } from 'commander';
import { adminTokenFile, ensureAdminToken } from '../config/admin-token.ts';
import { readVariable } from '../config/environment.ts';
import { ConfigError, environmentConfig, loadConfigFile } from '../config/load.ts';
import { defaultAdminPort, defaultHost } from '../config/schema.ts';
import { composeGateway } from '../gateway.ts';
import type { ComposedGateway, Gateway } from '../gateway.ts';
import { openStandardStream } from '../telemetry/log-destination.ts';
import type { LogDestination } from '../telemetry/log-destination.ts';
import { endOnSignalOrFault } from './shutdown.ts';
import { whatFailed } from './what-failed.ts';

/** What the environment decides, in the help. */
const environmentHelp = `
Environment:
  TEXTGATE_CONFIG                            the config file, as --config
  TEXTGATE_UPSTREAM_URL, _UPSTREAM_API_KEY   without a config: the one server to serve, and its key; else a demo
  TEXTGATE_HOST, TEXTGATE_PORT               where clients reach it, if the config does not say
  TEXTGATE_ADMIN_HOST, _ADMIN_PORT           where operators do, if the config does not say
  TEXTGATE_ADMIN_TOKEN                       what operators present; made in ${adminTokenFile} without it
`;

/** Adds `textgate serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('start the gateway')
    .option(
      '-c, --config <file>',
      'a YAML config; without one the environment decides',
      readVariable(process.env, 'TEXTGATE_CONFIG'),
    )
    .addHelpText('after', environmentHelp)
    .action(serve);
}

async function serve({ config: file }: { config?: string }): Promise<void> {
  const stderr = openStandardStream(
    process.stderr,
    (lines) => `textgate: ${lines} lines could not be shown\n`,
  );
  try {
    const config = file === undefined ? environmentConfig(process.env) : loadConfigFile(file, process.env);
    const adminToken =
      config.admin.token ?? ensureAdminToken(adminTokenFile, (line) => stderr.write(`${line}\n`));
    const gateway = composeGateway(config, { adminToken, logLevel: 'info' });
    endOnSignalOrFault(gateway, stderr);
    if (file !== undefined) reloadOnChange(gateway, file, stderr);
    const { url, adminUrl } = await gateway.listen();
    stderr.write(`${await greeting(gateway, { url, adminUrl, tryOut: file === undefined })}\n`);
  } catch (error) {
    stderr.write(
      `${error instanceof ConfigError ? error.message : `textgate can't start: ${whatFailed(error)}`}\n`,
    );
    await stderr.flush(startFaultMs);
    process.exit(1);
  }
}

/** How long the stderr of a start that failed may take to get out, in milliseconds. */
const startFaultMs = 1_000;

/** How the command is called where this process was started: in a checkout, or from the package or image. */
const command = import.meta.url.endsWith('.ts') ? 'npm run textgate --' : 'textgate';

/** How often the config file is looked at for changes, in milliseconds: asking finds every kind of replacement. */
const watchMs = 1_000;

/** Takes a changed config into force, on SIGHUP or by itself. A bad one is told of and leaves the old one running. */
function reloadOnChange(gateway: ComposedGateway, file: string, stderr: LogDestination): void {
  const reload = (): void => {
    try {
      const restart = gateway.replaceConfig(loadConfigFile(file, process.env));
      stderr.write(`${file} is in force${restart.map((name) => `; ${name} needs a restart`).join('')}\n`);
    } catch (error) {
      gateway.reloadFailed(error);
    }
  };
  process.on('SIGHUP', reload);
  watchFile(file, { interval: watchMs, persistent: false }, (now, before) => {
    if (now.mtimeMs !== before.mtimeMs) reload();
  });
}

interface Place {
  readonly url: string;
  readonly adminUrl: string;
  /** Whether this is a start without a config, in which the first key is made by itself. */
  readonly tryOut: boolean;
}

async function greeting(gateway: Gateway, place: Place): Promise<string> {
  const lines = [`textgate serves ${place.url}/v1 (admin: ${place.adminUrl})`];
  const usual = `http://${defaultHost}:${defaultAdminPort}`;
  const where = place.adminUrl === usual ? '' : `TEXTGATE_ADMIN_URL=${reachable(place.adminUrl)} `;
  if (await gateway.hasKeys()) lines.push(`make another key with: ${where}${command} keys create <name>`);
  else if (!place.tryOut) lines.push(`make the first key with: ${where}${command} keys create <name>`);
  else {
    const [model = '<a name from /v1/models>'] = await gateway.modelNames();
    lines.push(...firstSteps((await gateway.createKey('first key')).secret, model, reachable(place.url)));
  }
  return lines.join('\n');
}

/** Lines that work when they are pasted into a shell. */
function firstSteps(secret: string, model: string, url: string): readonly string[] {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Say hello' }] });
  return [
    '',
    'This is your first key. It is shown only now:',
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

/** An address that listens everywhere is reached on this machine by its loopback name. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
