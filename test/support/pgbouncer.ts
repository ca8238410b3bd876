import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { identity } from './postgres-server.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';
import { onServer, postgresAbsence } from './test-postgres.ts';

const program = '/usr/sbin/pgbouncer';

/** Why tests with PgBouncer are skipped here; `null` where they are run. */
export const pgbouncerAbsence =
  postgresAbsence ?? (existsSync(program) ? null : 'needs PgBouncer: apt-get install pgbouncer');

/** A PgBouncer of a test's own. */
export interface PgBouncer {
  /** The URL of the database through it. */
  readonly url: string;
  /** Starts it again. */
  start(): Promise<void>;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
  /** Reads its config again, with other settings. */
  reload(settings: Readonly<Record<string, string | number>>): Promise<void>;
}

/** Starts the real one with Debian's defaults and these settings; it is ended with the test. */
export async function startPgBouncer(
  database: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<PgBouncer> {
  const folder = makeTemporaryFolder();
  chmodSync(folder, 0o755);
  const server = new URL(database);
  const port = await freePort();
  const config = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'users.txt');
  const write = (more: Readonly<Record<string, string | number>>): void => {
    const lines = { listen_addr: '127.0.0.1', listen_port: port, auth_type: 'trust', auth_file: users };
    const all = { ...lines, admin_users: server.username, unix_socket_dir: '', ...more };
    writeFileSync(
      config,
      `[databases]\n* = host=${server.hostname} port=${server.port || 5432}\n[pgbouncer]\n` +
        `${Object.entries(all)
          .map(([name, value]) => `${name} = ${value}`)
          .join('\n')}\n`,
    );
  };
  write(settings);
  writeFileSync(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  const url = new URL(database);
  url.host = `127.0.0.1:${port}`;
  const admin = new URL(url);
  admin.pathname = 'pgbouncer';
  let child: ChildProcess | null = null;
  const pooler: PgBouncer = {
    url: url.href,
    async start() {
      child = spawn(program, ['--quiet', config], { stdio: 'ignore', ...identity() });
      await eventually('PgBouncer answers', () =>
        onServer('SELECT 1', url.href).then(
          () => true,
          () => false,
        ),
      );
    },
    async kill() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
    async reload(more) {
      write(more);
      await onServer('RELOAD', admin.href);
    },
  };
  onTestFinished(() => pooler.kill());
  await pooler.start();
  return pooler;
}
