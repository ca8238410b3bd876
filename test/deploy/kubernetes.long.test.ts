import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Config } from '../../src/config/schema/schema.ts';
import { configFolder } from '../observability/monitoring-files.ts';
import {
  ConfigMap,
  Deployment,
  NetworkPolicy,
  PodDisruptionBudget,
  PrometheusRule,
  Service,
  ServiceMonitor,
  StatefulSet,
} from '../outside/kubernetes-schemas.ts';
import { generatedFile } from '../support/generated-file.ts';
import { loadYaml } from '../support/config-file.ts';
import { gatewayOf, kubernetesFolder, monitoringObjects, podOf, readObjects } from './kubernetes-objects.ts';
import type { KubernetesObject } from './kubernetes-objects.ts';

const root = join(configFolder, '..');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');

/** How long the last settlements may take at a shutdown, in seconds. */
const settlementsS = 20;

/** Values of the secrets that the objects name. */
const randomSecret = randomBytes(24).toString('hex');
const storageUrl = 'postgres://textgate:password@postgres.databases:5432/textgate';

/** An object of a published type, which knows its schema. */
interface Validated {
  /** Throws what is wrong with it. */
  validate(): void;
}

/** The module with the published schema of each kind that is shipped, and its validator. */
const published: Readonly<Record<string, readonly [string, new (data: never) => Validated]>> = {
  ConfigMap: ['kubernetes-models/v1/ConfigMap', ConfigMap],
  Deployment: ['kubernetes-models/apps/v1/Deployment', Deployment],
  NetworkPolicy: ['kubernetes-models/networking.k8s.io/v1/NetworkPolicy', NetworkPolicy],
  PodDisruptionBudget: ['kubernetes-models/policy/v1/PodDisruptionBudget', PodDisruptionBudget],
  PrometheusRule: [
    '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule',
    PrometheusRule,
  ],
  Service: ['kubernetes-models/v1/Service', Service],
  ServiceMonitor: [
    '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor',
    ServiceMonitor,
  ],
  StatefulSet: ['kubernetes-models/apps/v1/StatefulSet', StatefulSet],
};

const monitoring = `# Metrics, rules and dashboards as objects: for the operator of Prometheus, and for Grafana's sidecar, which looks for the label
# grafana_dashboard. Written from config/prometheus and config/grafana by UPDATE_README=1 npm test.
${monitoringObjects()
  .map((object) => stringify(object, { lineWidth: 0 }))
  .join('---\n')}`;
const monitoringIsCurrent = generatedFile('config/kubernetes/monitoring.yaml', monitoring) === monitoring;

const files = readdirSync(kubernetesFolder).map((file) => ({ file, objects: readObjects(file) }));
const pods = files.filter(({ file }) => file !== 'monitoring.yaml');

function moduleOf({ kind }: KubernetesObject): readonly [string, new (data: never) => Validated] {
  const entry = published[kind];
  if (entry === undefined) throw new Error(`no published schema is imported for the kind ${kind}`);
  return entry;
}

/** What the compiler says of objects as literals of their published types: fields that the types do not have, above all. */
function compile(objects: readonly KubernetesObject[]): string {
  const folder = join(root, 'test', 'outside', 'node_modules', '.cache', 'kubernetes-types');
  mkdirSync(folder, { recursive: true });
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const lines = objects.map((object, index) => {
    const [module] = moduleOf(object);
    return `export const o${index}: import('${module}').I${object.kind} = ${JSON.stringify(object)};`;
  });
  const file = join(folder, 'objects.ts');
  writeFileSync(file, lines.join('\n'));
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const args = [
    tsc,
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--types',
    '',
    '--module',
    'nodenext',
    file,
  ];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: root });
  return stdout + stderr;
}

describe('the objects for Kubernetes', () => {
  test.for(files)('of $file are valid by the published schemas', ({ objects }) => {
    expect(objects.length).toBeGreaterThan(0);
    for (const object of objects) {
      const [, Published] = moduleOf(object);
      expect(() => new Published(object as never).validate()).not.toThrow();
    }
  });

  test('have no field that the published types do not have', () => {
    expect(compile(files.flatMap(({ objects }) => objects))).toBe('');
    const first = pods.flatMap(({ objects }) => objects).find(({ kind }) => kind === 'StatefulSet');
    const misspelt = JSON.parse(JSON.stringify(first).replace('livenessProbe', 'livenesProbe'));
    expect(compile([misspelt])).toContain('livenesProbe');
  });

  test('for monitoring are made of the rules and dashboards', () => {
    expect(monitoringIsCurrent, 'run UPDATE_README=1 npm test').toBe(true);
  });
});

describe.for(pods)('the pod of $file', ({ objects }) => {
  const pod = podOf(objects);
  const gateway = gatewayOf(pod);
  const valueOf = (name: string): string | undefined =>
    gateway.env.find((entry) => entry.name === name)?.value;
  const text = objects.find(({ kind }) => kind === 'ConfigMap')?.data?.['textgate.yaml'];
  const secrets = Object.fromEntries(
    gateway.env
      .filter(({ valueFrom }) => valueFrom !== undefined)
      .map(({ name }) => [name, name === 'TEXTGATE_STORAGE_URL' ? storageUrl : randomSecret]),
  );
  const readConfig = (): Config | undefined => (text === undefined ? undefined : loadYaml(text, secrets));

  test('has a config that can be used with the secrets that it names', () => {
    readConfig();
    expect(valueOf('TEXTGATE_CONFIG')).toBe(text === undefined ? undefined : '/etc/textgate/textgate.yaml');
    const mounts = gateway.volumeMounts?.map(({ mountPath }) => mountPath) ?? [];
    expect(mounts.includes('/etc/textgate')).toBe(text !== undefined);
    expect(gateway.env.every(({ name }) => isUsed(name, text ?? ''))).toBe(true);
  });

  test('has more time to end than the gateway may take', () => {
    const { shutdownDelay = 0, drain = 25_000 } = readConfig()?.server ?? {};
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan((shutdownDelay + drain) / 1_000 + settlementsS);
    const copies = objects.find(({ kind }) => kind === 'StatefulSet')?.spec?.replicas ?? 1;
    const { periodSeconds = 10, failureThreshold = 3 } = gateway.readinessProbe ?? {};
    const noticedS = copies > 1 ? periodSeconds * failureThreshold : 0;
    expect(shutdownDelay / 1_000).toBeGreaterThanOrEqual(noticedS);
  });

  test('keeps to the restricted security standard', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(pod.automountServiceAccountToken).toBe(false);
    for (const { securityContext } of [...(pod.initContainers ?? []), ...pod.containers])
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
    expect(gateway.securityContext.readOnlyRootFilesystem).toBe(true);
  });

  test('runs the gateway as the user of the image, with its data at the path of the image', () => {
    const [, user = ''] = /^USER (\d+)$/m.exec(dockerfile) ?? [];
    expect(String(gateway.securityContext.runAsUser ?? pod.securityContext.runAsUser)).toBe(user);
    expect(String(pod.securityContext.fsGroup)).toBe(user);
    const [, path = ''] = /^VOLUME (\S+)$/m.exec(dockerfile) ?? [];
    const mount = gateway.volumeMounts?.find(({ mountPath }) => mountPath === path);
    const claims = objects
      .flatMap(({ spec }) => spec?.volumeClaimTemplates ?? [])
      .map(({ metadata }) => metadata.name);
    expect([...pod.volumes.map(({ name }) => name), ...claims]).toContain(mount?.name);
  });

  test('is probed on the admin listener, which the kubelet can reach', () => {
    expect(valueOf('TEXTGATE_ADMIN_HOST')).toBe('0.0.0.0');
    const { startupProbe, livenessProbe, readinessProbe } = gateway;
    const asked = [startupProbe, livenessProbe, readinessProbe].filter((probe) => probe !== undefined);
    for (const { httpGet } of asked)
      expect(httpGet).toEqual({ path: expect.stringMatching(/^\/(?:healthz|readyz)$/), port: 'admin' });
    expect(livenessProbe?.httpGet?.path).toBe('/healthz');
    expect(gateway.ports).toContainEqual({ name: 'admin', containerPort: 8081 });
  });

  test('is the one that services, policies and budgets select', () => {
    const labels =
      objects.find(({ spec }) => spec?.template !== undefined)?.spec?.template?.metadata.labels ?? {};
    const selectors = objects
      .map(({ spec }) => spec?.podSelector?.matchLabels ?? spec?.selector?.matchLabels ?? spec?.selector)
      .filter((selector) => selector !== undefined);
    for (const selector of selectors) expect(labels).toMatchObject(selector);
    expect(selectors.length).toBeGreaterThan(1);
    const services = objects.filter(({ kind }) => kind === 'Service');
    const targets = services.flatMap(({ spec }) => spec?.ports?.map(({ targetPort }) => targetPort) ?? []);
    expect(gateway.ports?.map(({ name }) => name)).toEqual(expect.arrayContaining(targets));
    const named = objects.map(({ spec }) => spec?.serviceName).filter((name) => name !== undefined);
    expect(services.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(named));
  });
});

describe('a pod with a model server', () => {
  const pod = podOf(readObjects('model-server.yaml'));
  const [server] = pod.initContainers ?? [];

  test('starts it before the gateway and ends it after it, and only the gateway reaches it', () => {
    expect(server?.restartPolicy).toBe('Always');
    expect(server?.startupProbe).toBeDefined();
    expect(JSON.stringify(server)).toContain('"--host","127.0.0.1"');
    expect(pod.containers.map(({ name }) => name)).toEqual(['textgate']);
  });
});

/** Whether a container's variable is one of the gateway's own, or one that its config refers to. */
function isUsed(name: string, text: string): boolean {
  return /^TEXTGATE_[A-Z_]+$/.test(name) || text.includes(`\${${name}}`);
}
