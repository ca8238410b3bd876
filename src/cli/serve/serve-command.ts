import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import { isCheckout } from '../../shared/version.ts';
import type { ServeOptions } from './serve-config.ts';

/** How the gateway is started. */
const start = isCheckout ? 'npm start --' : 'textgate serve';

/** Texts that a shell takes as they are, and URLs in which no secret can be. */
const plainText = /^[\w@%+=:,./-]+$/;
const plainUrl = /^[\w:./[\]-]+$/;

/** The command that starts the same gateway again, to be pasted into a shell with further options. */
export function serveCommand(options: ServeOptions, environment: Environment): string {
  const { config, upstreamKeyEnv, host, port, adminHost, adminPort } = options;
  const upstream = options.upstream ?? readVariable(environment, 'TEXTGATE_UPSTREAM_URL');
  const given: readonly (readonly [string, string | number | undefined])[] = [
    ['--config', config],
    // A variable may be set for one command only, and would be missing from the next one.
    ['--upstream', config === undefined && plainUrl.test(upstream ?? '') ? upstream : undefined],
    ['--upstream-key-env', upstreamKeyEnv],
    ['--host', host],
    ['--port', port],
    ['--admin-host', adminHost],
    ['--admin-port', adminPort],
  ];
  const words = given.flatMap(([name, value]) => (value === undefined ? [] : [name, quote(String(value))]));
  return [start, ...words].join(' ');
}

function quote(text: string): string {
  return plainText.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
