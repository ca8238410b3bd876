import { configSchema } from '../config/schema/json-schema.ts';
import { describeOldPrices } from '../config/list-prices.ts';
import { loadConfigFile } from '../config/load.ts';
import { redactedConfig, showConfig } from '../config/show-config.ts';
import type { Json } from './output.ts';

/** Checks a config file; throws `ConfigError` with all of its problems. */
export function checkFile(file: string): string {
  const age = describeOldPrices(loadConfigFile(file, process.env), Date.now());
  return `${file} is valid${age === null ? '' : `\nNote: ${age}`}`;
}

/** The effective config of a file, without its secrets, as a config file or as JSON. */
export function showFile(file: string, { json }: Json): string {
  const checked = loadConfigFile(file, process.env);
  return json ? JSON.stringify(redactedConfig(checked), null, 2) : showConfig(checked).trimEnd();
}

/** The JSON Schema of config files. */
export function showSchema(): string {
  return JSON.stringify(configSchema(), null, 2);
}
