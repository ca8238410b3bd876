import { stringify } from 'yaml';
import { fingerprintOf } from '../domain/audit/differences.ts';
import { originAlone } from '../domain/audit/safe-text.ts';
import { formatByteSize } from '../shared/byte-size.ts';
import { formatDuration } from '../shared/duration.ts';
import { formatUsd } from '../shared/money.ts';
import { formatShare } from '../shared/share.ts';
import { isPostgresUrl } from '../shared/postgres-url.ts';
import { schemaOf } from './read-config.ts';
import { mapValues } from './schema/schema-walk.ts';
import type { PlaceKind } from './schema/schema-walk.ts';
import type { Config } from './schema/schema.ts';

/** The text that replaces a secret. It is long enough for every kind of secret, so that what is shown is valid. */
const hidden = '(hidden-by-config-show)';

/** A checked config without its secrets, in the gateway's own units: milliseconds, bytes, nano-USD. */
export function redactedConfig(config: Config): unknown {
  return mapValues(schemaOf(config), config, redact);
}

/**
 * A checked config as a YAML file, in the units of its author: defaults filled in, secrets and the values of queries
 * hidden. The file is valid, and has the same meaning but for what is hidden.
 */
export function showConfig(config: Config): string {
  const shown = mapValues(schemaOf(config), config, (value, kind) =>
    // What is not in a file: prices that are derived from others, and settings that are not set.
    kind === 'unknown' || value === null ? undefined : writeValue(redact(value, kind), kind),
  );
  return stringify(shown, { lineWidth: 0 });
}

/**
 * The settings of a config as their author writes them, for comparison: a fingerprint stands for a secret, and behind the
 * origin of an address for all else of it. Without the declared keys.
 */
export function auditedSettings({ keys: _declared, ...config }: Config): object {
  return mapValues(schemaOf(config), config, (value, kind) => {
    if (kind === 'unknown' || value === null) return;
    if (kind === 'secret' && typeof value === 'string') return fingerprintOf(value);
    if (value instanceof URL) return originAlone(value.href);
    const shown = redact(value, kind);
    if (typeof value === 'string' && value !== shown) return `${String(shown)} ${fingerprintOf(value)}`;
    return typeof shown === 'number' ? writeValue(shown, kind) : shown;
  }) as object;
}

function redact(value: unknown, kind: PlaceKind): unknown {
  if (kind === 'secret' && typeof value === 'string') return hidden;
  if (kind === 'database' && typeof value === 'string') return withoutPassword(value);
  if (kind === 'path' && typeof value === 'string') return withoutQueryValues(value);
  return value instanceof URL ? withoutSecrets(value) : value;
}

/** Replaces the password in the URL of a database. */
function withoutPassword(address: string): string {
  const url = isPostgresUrl(address) ? URL.parse(address) : null;
  if (url === null || url.password === '') return address;
  url.password = hidden;
  return url.href;
}

/** Replaces what may be secret in an address: the password of a proxy, and the values of a query. */
function withoutSecrets({ href }: URL): string {
  const url = new URL(href);
  if (url.password !== '') url.password = hidden;
  return withoutQueryValues(url.href);
}

/** Replaces the values of a query: some providers take the key there. */
function withoutQueryValues(address: string): string {
  const start = address.indexOf('?');
  if (start === -1) return address;
  const names = [...new URLSearchParams(address.slice(start)).keys()].map(encodeURIComponent);
  return `${address.slice(0, start)}?${names.map((name) => `${name}=${hidden}`).join('&')}`;
}

/** Writes a value as it is written in a file, where `$` begins a reference. */
function writeValue(value: unknown, kind: PlaceKind): unknown {
  if (typeof value === 'string') return value.replaceAll('$', '$$$$');
  if (typeof value !== 'number') return value;
  if (kind === 'duration') return formatDuration(value);
  if (kind === 'size') return formatByteSize(value);
  if (kind === 'instant') return new Date(value).toISOString();
  if (kind === 'share') return formatShare(value);
  return kind === 'usd' ? formatUsd(value) : value;
}
