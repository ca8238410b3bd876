import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, startProcess, stopProcess, untilReady } from './processes.ts';
import type { Subject } from './subject.ts';

/** What is installed: the gateway, on a version of its HTTP server with which it serves streams. */
const manifest = {
  private: true,
  dependencies: { '@portkey-ai/gateway': '1.15.2' },
  overrides: { '@hono/node-server': '1.13.8' },
};

/** Where they are installed once for all runs. */
const cache = join(tmpdir(), 'textgate-bench-portkey-1.15.2');

/** How long the installation may take, in milliseconds. */
const installMs = 120_000;

/** The gateway of Portkey: the closest peer, which rewrites streams in TypeScript, too. */
export const portkey: Subject = {
  name: 'portkey',
  isTextgate: false,
  async start({ simulatorPort, folder, openFiles }) {
    const module = await install();
    const port = await freePort();
    const startedMs = performance.now();
    const child = startProcess(process.execPath, [module, `--port=${port}`, '--headless'], {
      cwd: folder,
      env: { NODE_ENV: 'production' },
      openFiles,
    });
    await untilReady(child, port, '/');
    const startMs = performance.now() - startedMs;
    const target = (path: string) => ({
      provider: 'openai',
      api_key: 'bench',
      custom_host: `http://127.0.0.1:${simulatorPort}${path}/v1`,
    });
    const targets = [target('/failing/1'), target('/failing/2'), target('')];
    const config = (value: object) => ({ 'x-portkey-config': JSON.stringify(value) });
    return {
      port,
      headers: config(target('')),
      failoverHeaders: config({ strategy: { mode: 'fallback' }, targets }),
      pid: child.pid ?? 0,
      commandLine: null,
      startMs,
      close: () => stopProcess(child),
    };
  },
};

/** Installs it unless an earlier run has, and returns the module that starts it. */
async function install(): Promise<string> {
  const module = join(cache, 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');
  if (existsSync(module)) return module;
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'package.json'), JSON.stringify(manifest));
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund'];
  await promisify(execFile)('npm', args, { cwd: cache, timeout: installMs });
  return module;
}
