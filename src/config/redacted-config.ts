import { z } from 'zod';
import { discovering, listing } from './schema.ts';
import type { Config } from './schema.ts';

/** What stands in the place of a secret. */
const hidden = '(hidden)';

/** Keys under which secrets stand, whose values are never shown; headers may hold them, too. */
const secretKeys = new Set(['apiKey', 'token']);

/** A checked config as people may read it. */
export function redactedConfig(config: Config): unknown {
  return JSON.parse(
    JSON.stringify(config, (key, value: unknown) => {
      if (secretKeys.has(key) && typeof value === 'string') return hidden;
      if (key === 'url' && typeof value === 'string') return withoutQueryValues(value);
      if (key === 'headers' && typeof value === 'object' && value !== null)
        return Object.fromEntries(Object.keys(value).map((name) => [name, hidden]));
      return value;
    }),
  ) as unknown;
}

/** Some providers take a key in the query. */
function withoutQueryValues(address: string): string {
  const [base = '', query] = address.split('?', 2);
  if (query === undefined) return address;
  const names = [...new URLSearchParams(query).keys()];
  return `${base}?${names.map((name) => `${name}=${hidden}`).join('&')}`;
}

/** The JSON Schema of a config file, in either of its forms. */
export function configSchema(): unknown {
  return z.toJSONSchema(z.union([listing, discovering]), { io: 'input', unrepresentable: 'any' });
}
