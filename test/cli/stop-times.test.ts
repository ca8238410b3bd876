import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadServeConfig } from '../../src/cli/serve/serve-config.ts';
import { composeGateway } from '../../src/gateway.ts';
import { parseDuration } from '../../src/shared/duration.ts';
import { readYaml } from '../observability/monitoring-files.ts';

const root = join(import.meta.dirname, '..', '..');

interface Service {
  /** Only gateways are built; all else is an image of others. */
  readonly build?: object;
  readonly stop_grace_period?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** How long a gateway may take to end after a signal, in milliseconds, with the defaults and some variables. */
function stopMs(variables: Readonly<Record<string, string>> = {}): number {
  const config = loadServeConfig({}, { ...variables, TEXTGATE_STORAGE_URL: 'sqlite::memory:' });
  const gateway = composeGateway(config, { logLevel: 'silent' });
  onTestFinished(() => gateway.close());
  return config.server.shutdownDelay + gateway.closeLimitMs();
}

const servicesOf = (file: string): readonly (readonly [string, Service])[] =>
  Object.entries(
    (readYaml(join(root, 'config', 'compose', file)) as { services: Record<string, Service> }).services,
  );

const gateways = ['compose.yml', 'model-server.yml', 'nodes.yml', 'sidecar.yml'].flatMap((file) =>
  servicesOf(file).flatMap(([name, service]) =>
    service.build === undefined ? [] : [[`${name} in ${file}`, service] as const],
  ),
);

/** The number of seconds that a pattern finds in a file. */
function secondsIn(file: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(join(root, file), 'utf8'))?.[1]);
}

describe('the time after which a gateway is killed is longer than the time that it may take to end', () => {
  test('is set for the gateways of all compose files', () => {
    expect(gateways.map(([name]) => name)).toEqual([
      'gateway in compose.yml',
      'textgate in model-server.yml',
      'gateway-1 in nodes.yml',
      'gateway-2 in nodes.yml',
      'textgate in sidecar.yml',
    ]);
  });

  test.each(gateways)('%s', (_name, { stop_grace_period: grace = '', environment = {} }) => {
    const { TEXTGATE_SHUTDOWN_DELAY: delay } = environment;
    const variables = delay === undefined ? {} : { TEXTGATE_SHUTDOWN_DELAY: delay };
    expect(parseDuration(grace)).toBeGreaterThan(stopMs(variables));
  });

  test.each([
    ['README.md', /--stop-timeout (\d+)/],
    ['config/kubernetes/app-sidecar.yaml', /terminationGracePeriodSeconds: (\d+)/],
    ['config/kubernetes/model-server.yaml', /terminationGracePeriodSeconds: (\d+)/],
  ])('%s', (file, pattern) => {
    expect(secondsIn(file, pattern) * 1_000).toBeGreaterThan(stopMs());
  });

  test('docs/operators/processes.md names what is added to the drain time', () => {
    const config = loadServeConfig({}, { TEXTGATE_STORAGE_URL: 'sqlite::memory:' });
    const addedMs = secondsIn('docs/operators/processes.md', /plus (\d+) s for the last settlements/) * 1_000;
    expect(config.server.drain + addedMs).toBe(stopMs());
  });
});
