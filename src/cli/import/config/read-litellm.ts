import { ConfigError, readConfigText } from '../../../config/load.ts';
import { maxLimit, within } from '../../../shared/schema-values.ts';
import { readValues } from './file-values.ts';
import type { Settings, Value } from './file-values.ts';
import { variablesIn } from './references.ts';

/** An entry of LiteLLM's `model_list`: one way to serve the model of a name. */
export interface Deployment {
  readonly name: string;
  /** LiteLLM's name of the model, in front of which the provider stands as a rule. */
  readonly model: string;
  /** `litellm_params`, with those of the credential in the place of its name, where the file has it. */
  readonly params: Settings;
  readonly info: Settings;
}

/** A config of LiteLLM's proxy, as far as its form is checked. */
export interface LitellmConfig {
  readonly deployments: readonly Deployment[];
  readonly root: Settings;
  /** The environment variables that it refers to. */
  readonly variables: ReadonlySet<string>;
}

/** The most problems of one file that are reported. */
const maxProblems = 10;

const empty: Settings = new Map();

/** Reads a config file of LiteLLM's proxy. Throws `ConfigError` with its problems and their lines. */
export function readLitellm(file: string): LitellmConfig {
  const text = readConfigText(file);
  const value = readValues(file, text);
  const root = settingsOf(value);
  const problem = findMistake(value, root);
  if (problem !== null) throw new ConfigError(file, [problem]);
  const credentials = readCredentials(root);
  const problems: string[] = [];
  const deployments = listOf(root.get('model_list')).flatMap((entry, index) => {
    const read = readDeployment(entry, credentials);
    if (typeof read !== 'string') return [read];
    problems.push(`line ${entry.line}: model_list[${index}]: ${read}`);
    return [];
  });
  if (problems.length > 0) throw new ConfigError(file, problems.slice(0, maxProblems));
  return { deployments, root, variables: variablesIn(text) };
}

/** Why a file as a whole can't be taken over; `null` if it can. */
function findMistake(value: Value, root: Settings): string | null {
  const line = (name: string): string => `line ${root.get(name)?.line ?? value.line}: ${name}`;
  if (root.has('include'))
    return `${line('include')}: the files that it names are not read: put what they have into one file`;
  const models = root.get('model_list');
  if (models?.kind === 'list' && models.items.length > 0) return null;
  if (models !== undefined || root.has('litellm_settings') || root.has('general_settings'))
    return `${line('model_list')}: it lists no models, and those that LiteLLM has in its database are not read: write them into it, or have \`textgate init\` write a config`;
  if (root.has('proxy_config'))
    return `${line('proxy_config')}: the settings of a chart: put what is below it into a file of its own`;
  if (root.has('upstreams')) return `${line('upstreams')}: this is a config of textgate already`;
  return `line ${value.line}: not a config of LiteLLM's proxy: that has model_list, with model_name and litellm_params in each entry`;
}

const expectedEntry = 'expected model_name, and litellm_params with model';

const credentialName = 'litellm_credential_name';

/** An entry of the list; or what is wrong with it. */
function readDeployment(entry: Value, credentials: ReadonlyMap<string, Settings>): Deployment | string {
  const settings = settingsOf(entry);
  const name = textOf(settings, 'model_name');
  const own = settings.get('litellm_params');
  if (name === null) return `${expectedEntry}: there is no model_name`;
  if (own?.kind !== 'settings') return `${expectedEntry}: there are no litellm_params`;
  const credential = credentials.get(textOf(own.settings, credentialName) ?? '');
  const params = new Map([...(credential ?? empty), ...own.settings]);
  if (credential !== undefined) params.delete(credentialName);
  const model = textOf(params, 'model');
  if (model === null) return `${expectedEntry}: there is no litellm_params.model`;
  return { name, model, params, info: settingsOf(settings.get('model_info')) };
}

function readCredentials(root: Settings): ReadonlyMap<string, Settings> {
  return new Map(
    listOf(root.get('credential_list')).map((entry) => {
      const settings = settingsOf(entry);
      return [textOf(settings, 'credential_name') ?? '', settingsOf(settings.get('credential_values'))];
    }),
  );
}

/** The settings in a value; none if it is of another kind. */
export function settingsOf(value: Value | undefined): Settings {
  return value?.kind === 'settings' ? value.settings : empty;
}

/** The values of a list; a single value counts as a list of one. */
export function listOf(value: Value | undefined): readonly Value[] {
  return value === undefined ? [] : value.kind === 'list' ? value.items : [value];
}

/** A setting that is a text, without blanks around it; `null` for any other, and for one that is not there. */
export function textOf(settings: Settings, name: string): string | null {
  const value = settings.get(name);
  const text = value?.kind === 'text' ? value.text.trim() : '';
  return text === '' ? null : text;
}

/** A setting that is a number, of `least` or more, by default above zero; `null` for anything else. */
export function numberOf(settings: Settings, name: string, least = Number.MIN_VALUE): number | null {
  return within(Number(textOf(settings, name) ?? Number.NaN), least, Number.MAX_VALUE);
}

/** A limit, of which a fraction is left out; `null` for what is none here. */
export function limitOf(settings: Settings, name: string): number | null {
  return within(Math.floor(numberOf(settings, name) ?? 0), 1, maxLimit);
}

/** Whether a value leaves a setting off: `false`, an empty list or no settings. */
export function isOff(value: Value): boolean {
  if (value.kind === 'text') return /^(?:false|no|off)?$/i.test(value.text);
  return (value.kind === 'list' ? value.items.length : value.settings.size) === 0;
}

/** Whether a switch is on, as Python's reader of YAML has it. */
export function isOn(settings: Settings, name: string): boolean {
  return /^(?:true|yes|on)$/i.test(textOf(settings, name) ?? '');
}
