import { join } from 'node:path';
import { installOnce } from './install-package.ts';
import { freePort } from '../../support/free-port.ts';
import { startServer } from './start-server.ts';
import type { Subject } from './subject.ts';
import { ownCheckout } from './textgate.ts';

/** What is installed: the gateway, on a version of its HTTP server with which it serves streams. */
const manifest = {
  private: true,
  dependencies: { '@portkey-ai/gateway': '1.15.2' },
  overrides: { '@hono/node-server': '1.13.8' },
};

/** Where they are installed once for all runs: in this checkout, as any user of the machine can write to its temp folder. */
const cache = join(ownCheckout, 'bench-results', '.cache', 'portkey-1.15.2');

/** The module that starts it. */
const module = join(cache, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');

/** The gateway of Portkey: the closest peer, which rewrites streams in TypeScript, too. */
export const portkey: Subject = {
  name: 'portkey',
  isTextgate: false,
  only: null,
  async start({ simulatorPort, folder, openFiles }) {
    await installOnce(cache, manifest);
    const port = await freePort();
    const running = await startServer({
      program: process.execPath,
      args: [module, `--port=${port}`, '--headless'],
      options: { cwd: folder, env: { NODE_ENV: 'production' }, openFiles },
      port,
    });
    const target = (path: string) => ({
      provider: 'openai',
      api_key: 'bench',
      custom_host: `http://127.0.0.1:${simulatorPort}${path}/v1`,
    });
    const targets = [target('/failing/1'), target('/failing/2'), target('')];
    const config = (value: object) => ({ 'x-portkey-config': JSON.stringify(value) });
    return {
      ...running,
      headers: config(target('')),
      failoverHeaders: config({ strategy: { mode: 'fallback' }, targets }),
    };
  },
};
