import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { checkConfig } from '../../src/config/load.ts';
import { configFolder, dashboards, prometheusFolder, readYaml } from './monitoring-files.ts';

interface Service {
  readonly profiles?: readonly string[];
  readonly image?: string;
  readonly build?: { readonly context: string };
  readonly user?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
}

const folder = join(configFolder, 'compose');
const { services, volumes } = readYaml(join(folder, 'compose.yml')) as {
  services: Record<'gateway' | 'prometheus' | 'grafana', Service>;
  volumes: Record<string, null>;
};
const { gateway, prometheus, grafana } = services;
const dockerfile = readFileSync(join(configFolder, '..', 'Dockerfile'), 'utf8');

/** Container paths of mounted files and folders, by their path in the checkout. */
const mounts = Object.values(services).flatMap((service) =>
  service.volumes.map((volume) => {
    const [source = '', target = '', mode] = volume.split(':');
    return { source, target, mode };
  }),
);
const ourMounts = mounts.filter(({ source }) => source.startsWith('.'));

/** The path in the checkout of a path inside a container. */
function inCheckout(path: string): string {
  const mount = ourMounts.find(({ target }) => path === target || path.startsWith(`${target}/`));
  if (mount === undefined) throw new Error(`${path} is not mounted`);
  return normalize(join(folder, mount.source, path.slice(mount.target.length)));
}

describe('the compose file', () => {
  test('starts the gateway alone, and monitoring only with its profile', () => {
    expect(Object.keys(services)).toEqual(['gateway', 'prometheus', 'grafana']);
    expect(gateway.profiles).toBeUndefined();
    expect([prometheus.profiles, grafana.profiles]).toEqual([['monitoring'], ['monitoring']]);
  });

  test('builds the gateway from this checkout', () => {
    expect(existsSync(join(folder, gateway.build?.context ?? '', 'Dockerfile'))).toBe(true);
  });

  test('pins the other images, without naming a registry', () => {
    for (const { image } of [prometheus, grafana]) expect(image).toMatch(/^[a-z]+\/[a-z]+:v?\d+\.\d+\.\d+$/);
  });

  test('publishes ports on loopback only, and none of the admin listener', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports).toEqual([
      '127.0.0.1:${TEXTGATE_PORT:-8080}:8080',
      '127.0.0.1:${PROMETHEUS_PORT:-9090}:9090',
      '127.0.0.1:${GRAFANA_PORT:-3000}:3000',
    ]);
  });

  test('runs nothing as root', () => {
    expect(dockerfile).toMatch(/^USER 1000$/m);
    for (const { user } of [prometheus, grafana]) expect(user).toMatch(/^[1-9]\d+:\d+$/);
  });

  test('mounts existing files read-only, and keeps data in its own volumes', () => {
    expect(ourMounts.length).toBeGreaterThan(0);
    expect(ourMounts.filter(({ mode }) => mode !== 'ro')).toEqual([]);
    expect(ourMounts.filter(({ source }) => !existsSync(join(folder, source)))).toEqual([]);
    const named = mounts.filter(({ source }) => !source.startsWith('.')).map(({ source }) => source);
    expect(new Set(named)).toEqual(new Set(Object.keys(volumes)));
  });

  test('mounts the gateway’s data at the path of the image, and checks its health with the image’s own command', () => {
    expect(gateway.volumes).toContain('gateway-data:/app/data');
    expect(dockerfile).toMatch(/^VOLUME \/app\/data$/m);
    expect(gateway.healthcheck?.test).toEqual(['CMD', 'textgate', 'health']);
    expect(dockerfile).toMatch(/^HEALTHCHECK [^]*?\n {2}CMD \["textgate", "health"\]$/m);
    // The command that the check runs is the image's link to the program.
    expect(dockerfile).toMatch(/ln -s \/app\/dist\/bundle\/main\.js \S*\/usr\/local\/bin\/textgate;/m);
  });
});

describe('the compose file of several nodes', () => {
  const nodes = readYaml(join(folder, 'nodes.yml')) as {
    services: Record<'gateway-1' | 'gateway-2' | 'balancer' | 'postgres', Service>;
    volumes: Record<string, null>;
  };
  const { 'gateway-1': first, 'gateway-2': second, balancer, postgres } = nodes.services;

  test('has two gateways that differ in their volume alone', () => {
    expect({ ...first, volumes: [] }).toEqual({ ...second, volumes: [] });
    expect([first.volumes, second.volumes]).toEqual([
      ['gateway-1-data:/app/data'],
      ['gateway-2-data:/app/data'],
    ]);
    expect(existsSync(join(folder, first.build?.context ?? '', 'Dockerfile'))).toBe(true);
  });

  test('publishes the balancer alone, on loopback, and mounts its config, which names both gateways', () => {
    const published = Object.entries(nodes.services).filter(([, { ports }]) => ports !== undefined);
    expect(published.map(([name, { ports }]) => [name, ports])).toEqual([
      ['balancer', ['127.0.0.1:${TEXTGATE_PORT:-8080}:8080']],
    ]);
    const [mounted = ''] = balancer.volumes;
    expect(mounted).toBe('./nodes.nginx.conf:/etc/nginx/nginx.conf:ro');
    const written = readFileSync(join(folder, 'nodes.nginx.conf'), 'utf8');
    for (const name of ['gateway-1', 'gateway-2']) expect(written).toContain(`server ${name}:8080`);
  });

  test('pins its images, and gives the gateways the database that it makes', () => {
    for (const { image } of [balancer, postgres]) expect(image).toMatch(/^[a-z]+:\d+\.\d+(\.\d+)?$/);
    const url = first.environment?.['TEXTGATE_STORAGE_URL']?.replace(/\$\{.*\}/, 'password') ?? '';
    const { protocol, username, hostname, pathname } = new URL(url);
    const { POSTGRES_USER: user, POSTGRES_DB: name } = postgres.environment ?? {};
    expect({ protocol, username, hostname, pathname }).toEqual({
      protocol: 'postgres:',
      username: user,
      hostname: 'postgres',
      pathname: `/${name}`,
    });
    expect(Object.keys(nodes.volumes)).toContain(postgres.volumes[0]?.split(':')[0]);
  });
});

describe('every compose file', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yml'));
  const own = checkConfig({ upstreams: {}, models: {} }, 'nothing').server;

  /** Services as they are written; all of a gateway have `build`. */
  const all = files.flatMap((file) => {
    const read = readYaml(join(folder, file)) as { services: Record<string, Service> };
    return Object.entries(read.services).map(([name, service]) => ({ file, name, service }));
  });
  const gateways = all.filter(({ service }) => service.build !== undefined);

  test('has a gateway', () => {
    expect(new Set(gateways.map(({ file }) => file))).toEqual(new Set(files));
    expect(files).toEqual(['compose.yml', 'model-server.yml', 'nodes.yml', 'sidecar.yml']);
  });

  test.for(all)('takes all rights from $name of $file', ({ name, service }) => {
    expect(service).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    // What the model server compiles is written all over its file system.
    expect(service.read_only).toBe(name === 'model-server' ? undefined : true);
  });

  test.for(gateways)('runs $name of $file as the image is made', ({ service }) => {
    expect([service.command, service.entrypoint, service.user]).toEqual([undefined, undefined, undefined]);
    expect(dockerfile).toMatch(/^ENTRYPOINT \["textgate"\]\nCMD \["serve"\]$/m);
    expect(service.healthcheck?.test).toEqual(['CMD', 'textgate', 'health']);
    expect(service.volumes.map((volume) => volume.split(':')[1])).toEqual(['/app/data']);
    expect(service.tmpfs).toEqual(['/tmp']);
    const ports = service.ports ?? [];
    expect(ports.filter((port) => !port.endsWith(`:${own.port}`))).toEqual([]);
    expect(dockerfile).toMatch(new RegExp(`^EXPOSE ${own.port}$`, 'm'));
  });

  test('lets every port of the host be chosen, on loopback', () => {
    const ports = all.flatMap(({ service }) => service.ports ?? []);
    expect(ports.length).toBeGreaterThan(4);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\$\{[A-Z]+_PORT:-\d+\}:\d+$/);
  });

  test('names the versions of its images', () => {
    const images = all.flatMap(({ service }) => service.image ?? []);
    for (const image of images) expect(image).toMatch(/^([a-z]+\/)?[a-z-]+:v?\d+\.\d+/);
  });

  const hasCompose = spawnSync('docker', ['compose', 'version']).status === 0;
  test.skipIf(!hasCompose).for(files)('is valid: %s (needs docker compose)', (file) => {
    const environment = { POSTGRES_PASSWORD: 'x', TEXTGATE_ADMIN_TOKEN: 'x', TEXTGATE_KEY: 'x' };
    const args = ['compose', '--profile', 'monitoring', '-f', join(folder, file), 'config', '--quiet'];
    const { stderr, status } = spawnSync('docker', args, {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...environment },
    });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  });
});

describe('the Dockerfile', () => {
  const [, image = '', digest = ''] =
    /^FROM (node:\S+)@(sha256:[0-9a-f]{64}) AS system$/m.exec(dockerfile) ?? [];

  test('pins its base by version and digest, and names both in its labels', () => {
    const { version, description, license } = packageJson;
    const node = readFileSync(join(configFolder, 'node/package.json'), 'utf8');
    expect(image).toBe(`node:${(JSON.parse(node) as { version: string }).version}-bookworm-slim`);
    const page = readFileSync(join(configFolder, '../docs/contributors/image.md'), 'utf8');
    expect(page).toContain(`docker pull ${image}\n`);
    expect([...dockerfile.matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, from]) => from)).toEqual([
      `${image}@${digest}`,
      `${image}@${digest}`,
      'scratch',
    ]);
    const labels = Object.fromEntries(
      [...dockerfile.matchAll(/org\.opencontainers\.image\.([a-z.]+)="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, value],
      ),
    );
    expect(labels).toEqual({
      title: packageJson.name,
      description,
      licenses: license,
      version,
      'base.name': `docker.io/library/${image}`,
      'base.digest': digest,
    });
  });

  test('installs without scripts, and copies files that exist and are sent to the builder', () => {
    expect(dockerfile).toMatch(/^RUN npm ci --ignore-scripts$/m);
    const root = join(configFolder, '..');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, paths = '']) =>
      paths.split(' '),
    );
    const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
    expect(copied).toEqual(expect.arrayContaining(['LICENSE', 'config/textgate.example.yaml', 'src']));
    expect(copied.filter((path) => !existsSync(join(root, path)) || ignored.includes(path))).toEqual([]);
  });
});

describe('the mounted config', () => {
  test('makes Prometheus scrape the gateway’s admin listener', () => {
    const [, file = ''] = /--config\.file=(\S+)/.exec(prometheus.command?.join(' ') ?? '') ?? [];
    expect(inCheckout(file)).toBe(join(prometheusFolder, 'prometheus.yml'));
    expect(existsSync(inCheckout(file))).toBe(true);
    const { rule_files: ruleFiles, scrape_configs: jobs } = readYaml(inCheckout(file)) as {
      rule_files: string[];
      scrape_configs: { job_name: string; metrics_path: string; static_configs: { targets: string[] }[] }[];
    };
    expect(ruleFiles.toSorted()).toEqual(
      readdirSync(prometheusFolder)
        .filter((name) => name.endsWith('rules.yml'))
        .toSorted(),
    );
    expect(jobs).toMatchObject([
      { job_name: 'textgate', metrics_path: '/metrics', static_configs: [{ targets: ['gateway:8081'] }] },
    ]);
    expect(gateway.environment?.['TEXTGATE_ADMIN_HOST']).toBe('0.0.0.0');
  });

  test('gives Grafana its data source and the dashboards, the first of them as home', () => {
    const provisioning = inCheckout('/etc/grafana/provisioning');
    const sources = readYaml(join(provisioning, 'datasources', 'prometheus.yml')) as {
      datasources: { type: string; url: string; isDefault: boolean }[];
    };
    expect(sources.datasources).toMatchObject([
      { type: 'prometheus', url: 'http://prometheus:9090', isDefault: true },
    ]);
    const { providers } = readYaml(join(provisioning, 'dashboards', 'textgate.yml')) as {
      providers: { options: { path: string } }[];
    };
    const [path = ''] = providers.map(({ options }) => options.path);
    expect(readdirSync(inCheckout(path))).toEqual(dashboards.map(({ file }) => file));
    expect(
      existsSync(inCheckout(grafana.environment?.['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'] ?? '')),
    ).toBe(true);
  });
});
