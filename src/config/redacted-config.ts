import type { Config } from './schema.ts';

/** The text that replaces a secret. */
const hidden = '(hidden)';

/** The keys whose values are secrets. Headers may hold secrets, too; they are redacted separately. */
const secretKeys = new Set(['apiKey', 'key', 'token']);

/** A checked config without its secrets. */
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

/** Redacts the values of a query: some providers take the key there. */
function withoutQueryValues(address: string): string {
  const [base = '', query] = address.split('?', 2);
  if (query === undefined) return address;
  const names = [...new URLSearchParams(query).keys()];
  return `${base}?${names.map((name) => `${name}=${hidden}`).join('&')}`;
}
