import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { gatewayOf, podOf, readObjects } from './kubernetes-objects.ts';

describe('an app with a gateway of its own', () => {
  const pod = podOf(readObjects('app-sidecar.yaml'));
  const gateway = gatewayOf(pod);
  const [app] = pod.containers;

  test('starts once the gateway is ready, and ends before it', () => {
    expect(pod.initContainers).toEqual([gateway]);
    expect(gateway.restartPolicy).toBe('Always');
    expect(gateway.startupProbe?.httpGet?.path).toBe('/readyz');
    expect(pod.containers).toHaveLength(1);
  });

  test('calls it on the loopback of the pod, with the key that the gateway reads from a file', () => {
    const { server } = checkConfig({ upstreams: {}, models: {} }, 'nothing');
    const address = app?.env.find(({ name }) => name === 'OPENAI_BASE_URL')?.value;
    expect(address).toBe(`http://127.0.0.1:${server.port}/v1`);
    expect(gateway.env).toContainEqual({ name: 'TEXTGATE_HOST', value: '127.0.0.1' });
    const secret = app?.env.find(({ name }) => name === 'OPENAI_API_KEY')?.valueFrom?.secretKeyRef;
    const file = gateway.env.find(({ name }) => name === 'TEXTGATE_KEY_FILE')?.value ?? '';
    const mount = gateway.volumeMounts?.find(({ mountPath }) => file.startsWith(`${mountPath}/`));
    expect(pod.volumes.find(({ name }) => name === mount?.name)?.secret).toEqual({
      secretName: secret?.name,
      items: [{ key: secret?.key, path: basename(file) }],
    });
  });
});
