import { existsSync } from 'node:fs';
import { readVariable } from '../config/environment.ts';
import { checkConfig, environmentConfig, loadConfigFile } from '../config/load.ts';
import { writePath } from '../config/problem.ts';
import { describeUnset } from '../config/quotable.ts';
import type { Config } from '../config/schema/schema.ts';
import { namesInAnyConfig, namesInConfig, namesInEnvironment } from '../config/setting-names.ts';
import { examineUpstreams } from '../composition/upstreams/doctor.ts';
import type { UpstreamReport, Check } from '../doctor/report.ts';
import type { SettingNames } from '../domain/diagnosis/call-target.ts';
import type { DialectName } from '../protocol/upstream/dialects.ts';
import { parseDuration } from '../shared/duration.ts';
import { presentDoctor } from '../http/present/doctor.ts';
import { escapeControlCharacters } from '../shared/control-characters.ts';
import { count } from '../shared/count.ts';
import { describeError } from './describe-error.ts';
import { maxColumns, wrap } from './output.ts';
import type { Json } from './output.ts';
import { awaitAdmin, callAdmin } from './admin-client.ts';
import { findRunningGateway } from './running-gateway.ts';

/** The options of `doctor`, as commander names them. */
export interface DoctorOptions extends Json {
  readonly config?: string;
  readonly key?: string;
  readonly keyEnv?: string;
  readonly model?: string;
  readonly dialect?: DialectName;
  readonly timeout?: string;
  readonly wrongKey?: true;
}

/** The exit codes of the command. */
const exitCodes = { clean: 0, fault: 1, wrongUsage: 2, unfinished: 3 } as const;

/** How long one call may take without `--timeout`. */
const defaultTimeout = '30s';

/**
 * Examines the upstreams of a URL, a config file, the environment or a gateway that runs, and prints what is found of each.
 * `examine` makes the examination.
 */
export async function runDoctor(
  url: string | undefined,
  options: DoctorOptions,
  examine: typeof examineUpstreams = examineUpstreams,
): Promise<void> {
  let failing: number = exitCodes.wrongUsage;
  try {
    const { config, nameSettings, of } = readTargets(url, options);
    const examination = {
      model: options.model ?? null,
      callMs: readTimeout(options.timeout ?? defaultTimeout),
      triesWrongKey: options.wrongKey === true,
      triesResponses: url !== undefined && !isFile(url) && options.dialect === undefined,
      nameSettings,
    };
    const found = of === null && url === undefined ? await findRunningGateway() : null;
    const isThere = found?.isThere === true;
    if (isThere && (options.wrongKey === true || options.timeout !== undefined))
      throw new Error(
        `--wrong-key and --timeout go with a URL or a config file: without either, the gateway at ${found.url} checks its upstreams`,
      );
    // From here on, what the operator wrote is not at fault.
    failing = exitCodes.unfinished;
    const reports: UpstreamReport[] = [];
    const examined = isThere ? examineRunning(examination.model) : examine(config, examination);
    for await (const report of examined) {
      reports.push(report);
      if (options.json !== true) console.log(writeBlock(report));
    }
    const source = isThere ? `the gateway at ${found.url}` : of;
    console.log(
      options.json === true ? JSON.stringify(presentDoctor(reports), null, 2) : writeSummary(reports, source),
    );
    if (found !== null && !isThere) console.error(describeDemo(found.url));
    const hasFault = reports.some(({ status }) => status === 'fault');
    process.exitCode = hasFault ? exitCodes.fault : exitCodes.clean;
  } catch (error) {
    console.error(`textgate: ${describeError(error)}`);
    process.exitCode = failing;
  }
}

/** What was checked where nothing was named: it says nothing of any other upstream. */
function describeDemo(url: string): string {
  return `no upstream is named and no gateway answers on ${url}, so the built-in demo was checked, and nothing else: name what to check, as in textgate doctor textgate.yaml`;
}

function readTimeout(text: string): number {
  const timeoutMs = parseDuration(text);
  if (timeoutMs === null || timeoutMs <= 0) throw new Error('--timeout: expected a duration such as 30s');
  return timeoutMs;
}

/** The upstreams to check, and how their settings are called where the operator has written them. */
interface Targets {
  readonly config: Config;
  readonly nameSettings: (upstream: string) => SettingNames;
  /** Where they are configured; `null` for a URL, and where nothing is. */
  readonly of: string | null;
}

function readTargets(url: string | undefined, options: DoctorOptions): Targets {
  if (url !== undefined && isFile(url)) {
    if (options.config !== undefined)
      throw new Error('give the config file once: as the argument or with --config');
    return readTargets(undefined, { ...options, config: url });
  }
  if (url !== undefined)
    return { config: urlConfig(url, options), nameSettings: () => namesOfOptions(options), of: null };
  if (options.key !== undefined || options.keyEnv !== undefined || options.dialect !== undefined)
    throw new Error('--key, --key-env and --dialect go with a URL');
  const file = options.config ?? readVariable(process.env, 'TEXTGATE_CONFIG');
  if (file !== undefined)
    return { config: loadConfigFile(file, process.env), nameSettings: namesInConfig, of: file };
  const name = 'TEXTGATE_UPSTREAM_URL';
  const of = readVariable(process.env, name) === undefined ? null : name;
  return { config: environmentConfig(process.env), nameSettings: namesInEnvironment, of };
}

/** Whether the argument names a config file: no URL ends like one. */
function isFile(argument: string): boolean {
  return !/^[a-z]+:/i.test(argument) && (/\.ya?ml$/i.test(argument) || existsSync(argument));
}

function readKey({ key, keyEnv }: DoctorOptions): string | undefined {
  if (keyEnv === undefined) return key;
  if (key !== undefined) throw new Error('give either --key or --key-env');
  const found = readVariable(process.env, keyEnv);
  if (found === undefined) throw new Error(`--key-env: ${describeUnset(keyEnv, process.env)}`);
  return found;
}

/** The config of an upstream that is given by its URL, and named after its host. */
function urlConfig(url: string, options: DoctorOptions): Config {
  if (options.config !== undefined) throw new Error('give either a URL or --config');
  const name = URL.parse(url)?.host || 'url';
  const upstream = { url, apiKey: readKey(options), dialects: [options.dialect ?? 'chat'] };
  try {
    return checkConfig({ upstreams: { [name]: upstream }, models: { from: name } }, 'the command line');
  } catch (error) {
    const optionNames = namesOfOptions(options);
    const named = describeError(error)
      .replaceAll(writePath(['upstreams', name, 'url']), optionNames.url)
      .replaceAll(writePath(['upstreams', name, 'apiKey']), optionNames.apiKey)
      .replaceAll(writePath(['upstreams', name, 'dialects']), '--dialect');
    throw new Error(named, { cause: error });
  }
}

/** Names the settings of an upstream where the operator gave them: its key is in a variable, in `--key`, or missing. */
function namesOfOptions({ key, keyEnv }: DoctorOptions): SettingNames {
  const keyOption = key === undefined ? '--key-env' : '--key';
  return {
    url: 'the URL',
    apiKey: keyEnv === undefined ? keyOption : `the variable ${keyEnv}`,
    ...namesInAnyConfig,
  };
}

/** The columns of the status and of a check's id; a longer id is followed by its detail without a gap. */
const statusColumns = 9;
const idColumns = 20;

/** Where texts below a check's first line begin, in columns. */
const textColumn = 2 + statusColumns;

/** One upstream's checks as a block of lines: status, check, detail, and the advice below it. */
export function writeBlock({ name, url, checks }: UpstreamReport): string {
  const head = escapeControlCharacters(`${name}: ${url}`);
  return [head, ...checks.flatMap(writeCheck), ''].join('\n');
}

function writeCheck({ status, id, detail, advice }: Check): readonly string[] {
  const isShort = id.length < idColumns;
  const column = isShort ? textColumn + idColumns : textColumn;
  const shown = escapeControlCharacters(isShort ? detail : `${id}: ${detail}`);
  const [first = '', ...rest] = wrap(shown, maxColumns - column);
  const head = `  ${status.padEnd(statusColumns)}${isShort ? id.padEnd(idColumns) : ''}`;
  const advices =
    advice === null ? [] : wrap(`→ ${escapeControlCharacters(advice)}`, maxColumns - textColumn);
  return [head + first, ...indent(rest, column), ...indent(advices, textColumn)];
}

function indent(lines: readonly string[], column: number): readonly string[] {
  return lines.map((line) => ' '.repeat(column) + line);
}

/** The last line: how many upstreams there are, where they are configured, and how many have faults or warnings. */
function writeSummary(reports: readonly UpstreamReport[], of: string | null): string {
  const having = (status: UpstreamReport['status']): number =>
    reports.filter((report) => report.status === status).length;
  const place = of === null ? '' : ` of ${escapeControlCharacters(of)}`;
  return `${count(reports.length, 'upstream')}${place}: ${having('ok')} ok, ${having('warning')} with warnings, ${having('fault')} with faults`;
}

/** Has the running gateway examine the upstreams of its config one after the other; `null` asks the usual model of each. */
async function* examineRunning(model: string | null): AsyncGenerator<UpstreamReport> {
  const { data } = await callAdmin<{
    readonly data: readonly { readonly name: string }[];
  }>('GET', '/admin/upstreams');
  for (const { name } of data) {
    const body = JSON.stringify(model === null ? {} : { model });
    const path = `/admin/upstreams/${encodeURIComponent(name)}/doctor`;
    const { upstreams } = await awaitAdmin<{ readonly upstreams: readonly UpstreamReport[] }>(path, {
      method: 'POST',
      body,
    });
    yield* upstreams;
  }
}
