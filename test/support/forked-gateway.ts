import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A gateway in a process of its own, so that only its memory is measured. */
export interface ForkedGateway {
  readonly url: string;
  readonly adminUrl: string;
  readonly key: string;
  /** Its memory after a garbage collection, in bytes. */
  memory(): Promise<NodeJS.MemoryUsage>;
}

/** Starts a gateway that ends with the running test. */
export async function forkGateway(upstreamUrl: string): Promise<ForkedGateway> {
  const child = fork(join(import.meta.dirname, 'forked-gateway-child.ts'), [upstreamUrl], {
    execArgv: ['--expose-gc'],
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  const [started] = (await once(child, 'message')) as [Pick<ForkedGateway, 'url' | 'adminUrl' | 'key'>];
  return {
    ...started,
    async memory() {
      child.send('memory');
      const [{ memory }] = (await once(child, 'message')) as [{ memory: NodeJS.MemoryUsage }];
      return memory;
    },
  };
}
