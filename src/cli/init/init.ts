import { examineUpstreams } from '../../composition/upstreams/doctor.ts';
import type { UpstreamReport } from '../../doctor/report.ts';
import { defaultAdminPort, defaultHost, defaultPort } from '../../config/default-addresses.ts';
import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import { loadConfigFile } from '../../config/load.ts';
import { describeUnset } from '../../config/quotable.ts';
import type { Config } from '../../config/schema/schema.ts';
import { namesInConfig } from '../../config/setting-names.ts';
import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { count } from '../../shared/count.ts';
import { writeBlock } from '../doctor.ts';
import { forTerminal } from '../output.ts';
import { command } from '../serve/greeting.ts';
import { refuseOutput, shellWord, writeConfigFile } from '../write-config-file.ts';
import { askForUpstream, askOnTerminal, askWhich } from './ask.ts';
import type { Ask } from './ask.ts';
import { chooseModels } from './choose-models.ts';
import type { ChosenModels } from './choose-models.ts';
import { askForModels, findInEnvironment, upstreamAt } from './find-upstreams.ts';
import type { AskedUpstream, FoundUpstream } from './known-upstreams.ts';
import { localServers } from './known-upstreams.ts';
import { portsBeside, writeConfig } from './write-config.ts';

/** The options of `textgate init`, as commander names them. */
export interface InitOptions {
  readonly upstream?: string;
  readonly apiKeyEnv?: string;
  readonly model: readonly string[];
  readonly price?: string;
  readonly output: string;
  readonly force?: true;
}

/** What `init` has of the process that runs it. */
export interface InitPorts {
  readonly environment: Environment;
  /** `null` without a terminal. */
  readonly ask: Ask | null;
  /** The servers of one's own that may run on this machine. */
  readonly local: readonly FoundUpstream[];
}

/** How long one call of the checks may take, in milliseconds: a model on a CPU may be slow. */
const callMs = 60_000;

/** Writes a config for the upstreams that are named or found, and checks them. The exit code is 1 if a check finds a fault. */
export async function init(options: InitOptions, ports: InitPorts = processPorts()): Promise<void> {
  const { output, force = false } = options;
  refuseOutput(output, force);
  const upstreams = await findUpstreams(options, ports);
  const chosen = chooseAll(upstreams, options);
  const text = writeConfig(chosen);
  const config = loadConfigFile(output, ports.environment, {}, text);
  writeConfigFile(output, text, force);
  console.log(describeFile(output, chosen));
  const hasFault = await check(config);
  console.log(nextSteps(output, upstreams));
  if (hasFault) process.exitCode = 1;
}

function processPorts(): InitPorts {
  const local = localServers.map(({ name, line }) => ({ name, line, foundBy: line.url }));
  return { environment: process.env, ask: askOnTerminal(), local };
}

/** The upstreams with their models: the one that is named, or those that are found and that the operator wants. */
async function findUpstreams(options: InitOptions, ports: InitPorts): Promise<readonly AskedUpstream[]> {
  const { environment, ask, local } = ports;
  const named = readNamed(options, environment);
  if (named !== null) return requireModels(await askForModels([named], environment), options);
  const inEnvironment = findInEnvironment(environment);
  const asked = await askForModels([...inEnvironment, ...local], environment);
  for (const { name, foundBy, listed } of asked.slice(0, inEnvironment.length))
    if (listed.kind === 'failed')
      console.error(forTerminal(`left out: ${name} (${foundBy}): ${listed.problem}`));
  const found = withOwnNames(asked.filter(({ listed }) => listed.kind === 'listed'));
  if (found.length > 1 && ask !== null) return askWhich(found, ask);
  if (found.length > 0) return found;
  if (ask === null) throw new Error(nothingFound);
  const { url, variable } = await askForUpstream(ask);
  const given = givenUpstream(url, variable, 'the URL', environment);
  return requireModels(await askForModels([given], environment), options);
}

const nothingFound =
  "no upstream was found: no variable has a provider's key, such as OPENAI_API_KEY, and no model server answers on a usual port of this machine. Name one: --upstream http://127.0.0.1:8000/v1, and --api-key-env with the variable of its key if it needs one";

function readNamed({ upstream, apiKeyEnv }: InitOptions, environment: Environment): FoundUpstream | null {
  if (upstream !== undefined) return givenUpstream(upstream, apiKeyEnv, '--upstream', environment);
  if (apiKeyEnv !== undefined) throw new Error('--api-key-env goes with --upstream');
  return null;
}

/** The upstream that an operator has given. A name of a variable that is none may be a key by mistake, and is not quoted. */
function givenUpstream(
  url: string,
  variable: string | undefined,
  foundBy: string,
  environment: Environment,
): FoundUpstream {
  if (variable !== undefined && readVariable(environment, variable) === undefined)
    throw new Error(`--api-key-env: ${describeUnset(variable, environment)}`);
  return upstreamAt({ url, variable: variable ?? null, foundBy });
}

/** Upstreams of which each has a list, or models that the operator named. */
function requireModels(asked: readonly AskedUpstream[], { model }: InitOptions): readonly AskedUpstream[] {
  for (const { listed } of asked)
    if (listed.kind === 'failed' && model.length === 0)
      throw new Error(`${listed.problem}\nIf it has no list of models, name one with --model.`);
  return asked;
}

/** The same upstreams under different names. */
function withOwnNames(found: readonly AskedUpstream[]): readonly AskedUpstream[] {
  return found.map((upstream, index) => {
    const isTaken = found.slice(0, index).some(({ name }) => name === upstream.name);
    return isTaken ? Object.assign({}, upstream, { name: `${upstream.name}-${index + 1}` }) : upstream;
  });
}

function chooseAll(
  upstreams: readonly AskedUpstream[],
  { model, price }: InitOptions,
): readonly ChosenModels[] {
  if (model.length > 0 && upstreams.length > 1)
    throw new Error('--model goes with one upstream: name it with --upstream');
  const taken = new Set<string>();
  const all = upstreams.map((upstream) => {
    const chosen = chooseModels(upstream, { models: [...new Set(model)], price: price ?? null }, taken);
    for (const { name } of chosen.models) taken.add(name);
    return chosen;
  });
  if (taken.size === 0)
    throw new Error('no model that is listed seems to answer with text: name one with --model');
  return all;
}

function describeFile(output: string, chosen: readonly ChosenModels[]): string {
  const models = chosen.flatMap((one) => one.models);
  const free = models.filter(({ price }) => price.kind === 'free').length;
  const from = chosen.map(({ upstream }) => upstream.name).join(', ');
  const costless =
    free === 0 ? '' : `; ${free === models.length ? 'they cost' : `${free} of them cost`} clients nothing`;
  return `${escapeControlCharacters(output)} is written: ${count(models.length, 'model')} of ${from}${costless}\n`;
}

/** Makes the checks of `textgate doctor`; whether one found a fault. */
async function check(config: Config): Promise<boolean> {
  const options = {
    model: null,
    callMs,
    triesWrongKey: false,
    triesResponses: false,
    nameSettings: namesInConfig,
  };
  const reports: UpstreamReport[] = [];
  for await (const report of examineUpstreams(config, options)) {
    reports.push(report);
    console.log(writeBlock(report));
  }
  return reports.some(({ status }) => status === 'fault');
}

/** The commands that come next; the gateway's first lines have them with the key. */
function nextSteps(output: string, upstreams: readonly FoundUpstream[]): string {
  const { port, adminPort } = portsBeside(upstreams);
  const file = shellWord(output);
  const admin = adminPort === defaultAdminPort ? '' : `TEXTGATE_CONFIG=${file} `;
  const url = port === defaultPort ? '' : `TEXTGATE_URL=http://${defaultHost}:${port} `;
  return [
    'Next:',
    `  ${command} serve ${escapeControlCharacters(file)}`,
    `  ${admin}${command} keys create bob --balance 5.00`,
    `  ${url}TEXTGATE_API_KEY=sk-tg-… ${command} say "Say hello"`,
  ].join('\n');
}
