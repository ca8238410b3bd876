import { configSchema } from '../config/schema/json-schema.ts';
import { loadConfigFile } from '../config/load.ts';
import { redactedConfig, showConfig } from '../config/show-config.ts';
import type { Json } from './output.ts';

/** Throws `ConfigError` with all problems of a config file. */
export function checkFile(file: string): string {
  loadConfigFile(file, process.env);
  return `${file} is valid`;
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
