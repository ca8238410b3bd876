/** The schemas of the Kubernetes objects that the project has files for. */
export {
  PrometheusRule,
  ServiceMonitor,
} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
export { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
export { Deployment } from 'kubernetes-models/apps/v1/Deployment';
export { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
export { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
export { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
export { Service } from 'kubernetes-models/v1/Service';
