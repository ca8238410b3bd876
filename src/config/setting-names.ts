import type { SettingNames } from '../domain/diagnosis/call-target.ts';

/** Names the settings of an upstream in a config. */
export function namesInConfig(upstream: string): SettingNames {
  const path = `upstreams.${upstream}`;
  return { url: `${path}.url`, apiKey: `${path}.apiKey`, allowLinkLocal: `${path}.allowLinkLocal` };
}

/** Names the settings of the upstream of a start without a config file. */
export function namesInEnvironment(): SettingNames {
  return {
    url: 'TEXTGATE_UPSTREAM_URL',
    apiKey: 'TEXTGATE_UPSTREAM_API_KEY',
    allowLinkLocal: 'allowLinkLocal in a config file',
  };
}
