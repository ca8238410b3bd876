import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** A proxy that many networks have, as Debian packages it. */
interface DebianProxy {
  readonly program: string;
  /** Writes its config into a folder that it may read; returns the arguments that start it in the foreground. */
  readonly configure: (folder: string, port: number, user: string, password: string) => readonly string[];
}

export const debianProxies: Readonly<Record<string, DebianProxy>> = {
  tinyproxy: {
    program: '/usr/bin/tinyproxy',
    configure(folder, port, user, password) {
      const lines = [`Port ${port}`, 'Listen 127.0.0.1', `BasicAuth ${user} ${password}`, 'Timeout 60'];
      writeFileSync(join(folder, 'tinyproxy.conf'), `${lines.join('\n')}\n`);
      return ['-d', '-c', join(folder, 'tinyproxy.conf')];
    },
  },
  squid: {
    program: '/usr/sbin/squid',
    configure(folder, port, user, password) {
      const hash = execFileSync('openssl', ['passwd', '-apr1', password]).toString().trim();
      writeFileSync(join(folder, 'users'), `${user}:${hash}\n`);
      const lines = [
        `http_port 127.0.0.1:${port}`,
        `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${join(folder, 'users')}`,
        'acl known proxy_auth REQUIRED',
        'http_access allow known',
        'http_access deny all',
        'cache deny all',
        'access_log none',
        'cache_log /dev/null',
        'pid_filename none',
        'shutdown_lifetime 0 seconds',
        'pinger_enable off',
        `coredump_dir ${folder}`,
      ];
      writeFileSync(join(folder, 'squid.conf'), `${lines.join('\n')}\n`);
      return ['-N', '-f', join(folder, 'squid.conf')];
    },
  },
};

/** Whether a program of `debianProxies` is there. */
export function isInstalled(name: string): boolean {
  return existsSync(debianProxies[name]?.program ?? '');
}

/** Starts one of `debianProxies` on a free port of loopback. */
export async function startDebianProxy(
  name: string,
  user: string,
  password: string,
): Promise<{ readonly port: number; readonly close: () => Promise<void> }> {
  const proxy = debianProxies[name];
  if (proxy === undefined) throw new Error(`no proxy is named ${name}`);
  const folder = makeTemporaryFolder();
  // It may run as a user of its own.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const running = spawn(proxy.program, proxy.configure(folder, port, user, password), { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => running.once('exit', () => resolve()));
  await eventually(`${name} accepts connections`, () => {
    if (running.exitCode !== null) throw new Error(`${name} ended with ${running.exitCode}`);
    return accepts(port);
  });
  return {
    port,
    async close() {
      running.kill('SIGKILL');
      await ended;
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
