import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { runSql } from './run-sql.ts';

/** How long a server may take to answer, in milliseconds: after a crash it reads its log first. */
const startMs = 60_000;

/** The pause between two questions whether it answers, in milliseconds. */
const lookMs = 100;

/** The user under which servers run where tests run as root, which PostgreSQL refuses. */
const serverUser = 'postgres';

/** Each process of a gateway has 14, and several tests run at a time, each with up to four processes. */
const maxConnections = 300;

const neededPrograms = ['postgres', 'initdb', 'pg_basebackup'];

/** The folder of the server's programs; `null` where there is none. */
export const postgresPrograms: string | null =
  [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...globSync('/usr/lib/postgresql/*/bin').toSorted().toReversed(),
  ].find((folder) => neededPrograms.every((name) => existsSync(join(folder, name)))) ?? null;

/** A PostgreSQL server of a test's own, which may be stopped and killed. */
export interface PostgresServer {
  /** Where its files are. */
  readonly folder: string;
  readonly port: number;
  /** The URL of its database, as seen by clients on a port that may be a proxy's. */
  url(port?: number): string;
  /** Runs a statement in its database. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Starts it again, and resolves when it answers. */
  start(): Promise<void>;
  /** Ends it as `pg_ctl stop -m fast` does: connections are cut, and what was committed is on the disk. */
  stop(): Promise<void>;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
  /** A standby that follows it, started; it reaches the server by a port that may be a proxy's. */
  makeStandby(port?: number): Promise<PostgresServer>;
  /** Ends it and removes its files. */
  remove(): Promise<void>;
}

/** Makes a server on a free port, and starts it. */
export async function startPostgresServer(): Promise<PostgresServer> {
  const folder = makeFolder();
  await runProgram('initdb', [
    '-D',
    join(folder, 'data'),
    '-U',
    serverUser,
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--no-sync',
  ]);
  return startIn(folder);
}

async function startIn(folder: string): Promise<PostgresServer> {
  const port = await freePort();
  const data = join(folder, 'data');
  const urlOf = (at: number): string => `postgres://${serverUser}@127.0.0.1:${at}/postgres`;
  let child: ChildProcess | null = null;
  const end = async (signal: 'SIGINT' | 'SIGKILL'): Promise<void> => {
    if (child === null || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
    child = null;
  };
  const server: PostgresServer = {
    folder,
    port,
    url: (at = port) => urlOf(at),
    sql: (text) => runSql(text, urlOf(port)),
    async start() {
      const giveUpMs = performance.now() + startMs;
      while (performance.now() < giveUpMs) {
        // One that was killed leaves its shared memory for a moment, and the next one ends at once.
        if (child === null || child.exitCode !== null) child = spawnServer(data, port);
        const answers = await runSql('SELECT 1', urlOf(port)).then(
          () => true,
          () => false,
        );
        if (answers) return;
        await wait(lookMs);
      }
      throw new Error('the PostgreSQL server did not start');
    },
    stop: () => end('SIGINT'),
    kill: () => end('SIGKILL'),
    async makeStandby(at = port) {
      const copy = makeFolder();
      const source = ['-h', '127.0.0.1', '-p', String(at), '-U', serverUser];
      const form = ['-R', '-X', 'stream', '--checkpoint=fast', '--no-sync'];
      await runProgram('pg_basebackup', ['-D', join(copy, 'data'), ...source, ...form]);
      return startIn(copy);
    },
    async remove() {
      await end('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

/** Durable beyond its own death, which is all that tests do to it; the machine's disk is spared. */
function spawnServer(data: string, port: number): ChildProcess {
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${dirname(data)}`,
    'fsync=off',
    // In its folder, which is removed: a server that is killed leaves its part of the machine's shared memory there for ever.
    'dynamic_shared_memory_type=mmap',
    `max_connections=${maxConnections}`,
  ];
  const child = spawn(
    program('postgres'),
    ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
    { stdio: 'ignore', ...identity() },
  );
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-postgres-'));
  const { uid, gid } = identity();
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  return folder;
}

/** Runs a program to its end, beside what else this process does: it may connect through a proxy of this process. */
async function runProgram(name: string, args: readonly string[]): Promise<void> {
  const child = spawn(program(name), args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    cwd: tmpdir(),
    ...identity(),
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${name} ended with ${code}`);
}

function program(name: string): string {
  if (postgresPrograms === null) throw new Error('there are no programs of a PostgreSQL server here');
  return join(postgresPrograms, name);
}

/** Whom a server runs as: PostgreSQL and PgBouncer refuse root. */
export function identity(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number =>
    Number(execFileSync('id', [flag, serverUser], { encoding: 'utf8' }).trim());
  return { uid: id('-u'), gid: id('-g') };
}
