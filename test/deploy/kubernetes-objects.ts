import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { configFolder, dashboards, prometheusFolder, readYaml } from '../observability/monitoring-files.ts';

export const kubernetesFolder = join(configFolder, 'kubernetes');

/** One variable of a container, with its value or the key of the secret that has it. */
interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string };
  readonly periodSeconds?: number;
  readonly failureThreshold?: number;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly env: readonly Variable[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly securityContext: {
    readonly runAsUser?: number;
    readonly readOnlyRootFilesystem?: boolean;
    readonly allowPrivilegeEscalation: boolean;
    readonly capabilities: { readonly drop: readonly string[] };
  };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface Pod {
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks?: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: {
    readonly runAsNonRoot: boolean;
    readonly runAsUser?: number;
    readonly fsGroup: number;
    readonly seccompProfile: { readonly type: string };
  };
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly secret?: {
      readonly secretName: string;
      readonly items: readonly { readonly key: string; readonly path: string }[];
    };
  }[];
}

type Labels = Readonly<Record<string, string>>;

/** An object of Kubernetes; `spec` has what the tests read of the kinds that are shipped. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Labels };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly replicas?: number;
    readonly serviceName?: string;
    readonly selector?: Labels & { readonly matchLabels?: Labels };
    readonly podSelector?: { readonly matchLabels: Labels };
    readonly ports?: readonly { readonly name: string; readonly targetPort: string }[];
    readonly template?: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
  };
}

/** Reads all objects of a text with one document for each. */
export function parseObjects(text: string): readonly KubernetesObject[] {
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS() as KubernetesObject | null;
    })
    .filter((object) => object !== null);
}

/** The objects of a file of `config/kubernetes`. */
export function readObjects(file: string): readonly KubernetesObject[] {
  return parseObjects(readFileSync(join(kubernetesFolder, file), 'utf8'));
}

/** The pod that a file of `config/kubernetes` makes. */
export function podOf(objects: readonly KubernetesObject[]): Pod {
  const pod = objects.find(({ spec }) => spec?.template !== undefined)?.spec?.template?.spec;
  if (pod === undefined) throw new Error('no object has a pod');
  return pod;
}

/** The gateway among a pod's containers. */
export function gatewayOf({ initContainers = [], containers }: Pod): Container {
  const gateway = [...initContainers, ...containers].find(({ name }) => name === 'textgate');
  if (gateway === undefined) throw new Error('the pod has no gateway');
  return gateway;
}

const labels = { 'app.kubernetes.io/name': 'textgate', 'app.kubernetes.io/instance': 'textgate' };

/** The objects for Prometheus' operator and Grafana, made of the scraped job's rules and dashboards. */
export function monitoringObjects(): readonly object[] {
  const groups = ['recording-rules.yml', 'alert-rules.yml'].flatMap(
    (file) => (readYaml(join(prometheusFolder, file)) as { groups: readonly object[] }).groups,
  );
  const metadata = { name: 'textgate', labels };
  return [
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'ServiceMonitor',
      metadata,
      spec: {
        jobLabel: 'app.kubernetes.io/name',
        selector: { matchLabels: labels },
        endpoints: [{ port: 'admin', interval: '15s' }],
      },
    },
    { apiVersion: 'monitoring.coreos.com/v1', kind: 'PrometheusRule', metadata, spec: { groups } },
    ...dashboards.map(({ file, text }) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: `textgate-dashboard-${basename(file, '.json')}`,
        labels: { ...labels, grafana_dashboard: '1' },
      },
      data: { [`textgate-${file}`]: text },
    })),
  ];
}
