import { loadConfigFile } from '../config/load.ts';
import { configSchema } from '../config/json-schema.ts';
import { redactedConfig } from '../config/redacted-config.ts';

/** Throws `ConfigError` with all problems of a config file. */
export function checkFile(file: string): string {
  loadConfigFile(file, process.env);
  return `${file} is valid`;
}

/** The effective config of a file, without its secrets, as JSON. */
export function showFile(file: string): string {
  return JSON.stringify(redactedConfig(loadConfigFile(file, process.env)), null, 2);
}

/** The JSON Schema of config files. */
export function showSchema(): string {
  return JSON.stringify(configSchema(), null, 2);
}
