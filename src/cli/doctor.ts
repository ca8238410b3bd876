import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import type { UpstreamReport } from '../doctor/report.ts';
import type { SettingNames } from '../domain/call-target.ts';
import { parseDuration } from '../shared/duration.ts';
import { readVariable } from '../config/environment.ts';
import { namesInConfig, namesInEnvironment } from '../config/setting-names.ts';
import type { Config } from '../config/schema.ts';
import { describeError } from './describe-error.ts';

interface DoctorFlags {
  readonly config?: string;
  readonly key?: string;
  readonly keyEnv?: string;
  readonly model?: string;
  readonly dialect?: DialectFlag;
  readonly timeout: number;
  readonly wrongKey?: true;
  readonly json?: true;
}

const dialectFlags = ['chat', 'responses', 'anthropic', 'gemini'] as const;
type DialectFlag = (typeof dialectFlags)[number];

/** The exit codes of the command. */
const exitCodes = { clean: 0, fault: 1, wrongUsage: 2 } as const;

const defaultTimeoutMs = 30_000;

const help = `
Each upstream is called about ten times, as the gateway calls it, which costs a few hundred tokens.
Without a URL, the upstreams of the config file are checked, or that of TEXTGATE_UPSTREAM_URL.

Exit codes: 0 without a fault (there may be warnings), 1 with a fault, 2 for wrong usage or a wrong config.
`;

/** Adds `textgate doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check upstreams: connection, key, models, whole and streamed answers')
    .argument('[url]', 'the base URL of an upstream, version included, such as http://127.0.0.1:8000/v1')
    .option('-c, --config <file>', 'a config file, of which all upstreams are checked')
    .option('-m, --model <name>', "the model to ask; default: that of the first route, or the list's first")
    .option('--key <key>', 'the API key for the URL (visible in the list of processes: --key-env is not)')
    .option('--key-env <name>', 'the environment variable that holds the API key for the URL')
    .addOption(
      new Option(
        '--dialect <name>',
        'the protocol of the URL; default: chat, and responses if it is there',
      ).choices(dialectFlags),
    )
    .option(
      '--timeout <duration>',
      'how long one call may take (default: 30s)',
      readTimeout,
      defaultTimeoutMs,
    )
    .option('--wrong-key', 'check, too, that a wrong key is refused')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? exitCodes.clean : exitCodes.wrongUsage))
    .action(runDoctor);
}

function readTimeout(text: string): number {
  const timeoutMs = parseDuration(text);
  if (timeoutMs === null || timeoutMs <= 0)
    throw new InvalidArgumentError('Expected a duration such as 30s.');
  return timeoutMs;
}

async function runDoctor(url: string | undefined, flags: DoctorFlags): Promise<void> {
  try {
    const { config, nameSettings } = await readTargets(url, flags);
    // Loaded here, so that all other commands start without the clients of upstreams.
    const { examineUpstreams } = await import('../composition/doctor.ts');
    const { writeBlock, writeSummary, writeJson } = await import('./doctor-table.ts');
    const options = {
      model: flags.model ?? null,
      callMs: flags.timeout,
      triesWrongKey: flags.wrongKey === true,
      triesResponses: url !== undefined && flags.dialect === undefined,
      nameSettings,
    };
    const reports: UpstreamReport[] = [];
    for await (const report of examineUpstreams(config, options)) {
      reports.push(report);
      if (flags.json !== true) console.log(writeBlock(report));
    }
    console.log(flags.json === true ? writeJson(reports) : writeSummary(reports));
    const hasFault = reports.some(({ status }) => status === 'fault');
    process.exitCode = hasFault ? exitCodes.fault : exitCodes.clean;
  } catch (error) {
    console.error(`textgate: ${describeError(error)}`);
    process.exitCode = exitCodes.wrongUsage;
  }
}

/** The upstreams to check, and how their settings are called where the operator has written them. */
interface Targets {
  readonly config: Config;
  readonly nameSettings: (upstream: string) => SettingNames;
}

async function readTargets(url: string | undefined, flags: DoctorFlags): Promise<Targets> {
  const { checkConfig, environmentConfig, loadConfigFile } = await import('../config/load.ts');
  if (url !== undefined)
    return { config: urlConfig(url, flags, checkConfig), nameSettings: () => optionNames };
  if (flags.key !== undefined || flags.keyEnv !== undefined || flags.dialect !== undefined)
    throw new Error('--key, --key-env and --dialect go with a URL');
  const file = flags.config ?? readVariable(process.env, 'TEXTGATE_CONFIG');
  return file === undefined
    ? { config: environmentConfig(process.env), nameSettings: namesInEnvironment }
    : { config: loadConfigFile(file, process.env), nameSettings: namesInConfig };
}

function readKey({ key, keyEnv }: DoctorFlags): string | undefined {
  if (keyEnv === undefined) return key;
  if (key !== undefined) throw new Error('give either --key or --key-env');
  const found = readVariable(process.env, keyEnv);
  if (found === undefined) throw new Error(`the environment variable ${keyEnv} is not set`);
  return found;
}

/** The config of an upstream that is given by its URL, and named after its host. */
function urlConfig(
  url: string,
  flags: DoctorFlags,
  check: (input: unknown, source: string) => Config,
): Config {
  if (flags.config !== undefined) throw new Error('give either a URL or --config');
  const name = URL.parse(url)?.host || 'url';
  const upstream = { url, apiKey: readKey(flags), dialects: [flags.dialect ?? 'chat'] };
  try {
    return check({ upstreams: { [name]: upstream }, models: { from: name } }, 'the command line');
  } catch (error) {
    const named = describeError(error)
      .replaceAll(`upstreams.${name}.url`, optionNames.url)
      .replaceAll(`upstreams.${name}.apiKey`, optionNames.apiKey);
    throw new Error(named, { cause: error });
  }
}

const optionNames: SettingNames = {
  url: 'the URL',
  apiKey: '--key',
  allowLinkLocal: 'allowLinkLocal in a config file',
};
