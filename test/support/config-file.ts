import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, loadConfigFile } from '../../src/config/load.ts';
import type { Environment } from '../../src/config/environment.ts';
import type { Config } from '../../src/config/schema/schema.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** Reads a config file with this content. Throws `ConfigError`. */
export function loadYaml(yaml: string, environment: Environment = {}): Config {
  const file = join(makeTemporaryFolder(), 'textgate.yaml');
  writeFileSync(file, yaml);
  return loadConfigFile(file, environment);
}

/** The problems for which a config is refused; none if it is valid. */
export function problemsOf(load: () => unknown): readonly string[] {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}
