import type { SettingNames } from '../domain/diagnosis/call-target.ts';

/** Names the settings of an upstream in a config. */
export function namesInConfig(upstream: string): SettingNames {
  const path = `upstreams.${upstream}`;
  return {
    url: `${path}.url`,
    apiKey: `${path}.apiKey`,
    allowLinkLocal: `${path}.allowLinkLocal`,
    proxy: `${path}.proxy`,
    ca: `${path}.tls.ca`,
    clientCertificate: `${path}.tls.cert and ${path}.tls.key`,
  };
}

/** What only a config file can set, and the variable that sets the authorities of the whole process. */
export const namesInAnyConfig = {
  allowLinkLocal: 'allowLinkLocal in a config file',
  proxy: 'proxy in a config file',
  ca: 'NODE_EXTRA_CA_CERTS',
  clientCertificate: 'tls.cert and tls.key in a config file',
} as const;

/** Names the settings of the upstream of a start without a config file. */
export function namesInEnvironment(): SettingNames {
  return {
    url: 'TEXTGATE_UPSTREAM_URL',
    apiKey: 'TEXTGATE_UPSTREAM_API_KEY',
    ...namesInAnyConfig,
  };
}
