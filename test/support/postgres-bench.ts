import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { readTarget } from '../../src/storage/postgres/connection/connection-target.ts';
import { KeptConnection } from '../../src/storage/postgres/connection/connection.ts';
import type { ConnectionOptions } from '../../src/storage/postgres/connection/client-config.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';
import { startTcpProxy } from './tcp-proxy.ts';
import type { TcpProxy } from './tcp-proxy.ts';
import { createDatabase, onServer, postgresAbsence } from './test-postgres.ts';
import type { TestDatabase } from './test-postgres.ts';

/** What must be in no message. */
export const password = 'pass-w0rd';

/** A database for the tests of a file, on which connections are opened through a proxy. */
export interface PostgresBench {
  /** Its URL without a proxy. */
  readonly url: string;
  /** Runs a statement without the proxy. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
  /** A proxy to the server, and the URL of the database through it. */
  proxy(): Promise<{ readonly proxy: TcpProxy; readonly url: string }>;
}

/** Makes the database before the tests of a file, and drops it after them. */
export function usePostgresBench(): PostgresBench {
  let database: TestDatabase | null = null;
  const made = (): TestDatabase => {
    if (database === null) throw new Error('the database is made before the tests');
    return database;
  };
  beforeAll(async () => {
    if (postgresAbsence === null) database = await createDatabase();
  });
  afterAll(() => database?.drop());
  return {
    get url() {
      return made().url;
    },
    sql: (text) => onServer(text, made().url),
    async proxy() {
      const url = new URL(made().url);
      const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
      onTestFinished(() => proxy.close());
      url.hostname = '127.0.0.1';
      url.port = String(proxy.port);
      url.password ||= password;
      return { proxy, url: url.href };
    },
  };
}

/** A connection with a clock of its own, which is closed at the end of the test. */
export function keep(
  url: string,
  options: Partial<ConnectionOptions> = {},
): { readonly connection: KeptConnection; readonly clock: FakeClock } {
  const clock = createFakeClock();
  const connection = new KeptConnection({
    target: readTarget(url),
    limits: { statementMs: 5_000, lockMs: 4_000 },
    isReadOnly: false,
    clock,
    ...options,
  });
  onTestFinished(() => connection.close());
  return { connection, clock };
}

/** An error as the server sends it, such as before it ends a connection. */
export function errorMessage(code: string, text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** The `StorageError` that a promise is rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.then(
    () => null,
    (fault: unknown) => fault,
  );
  expect(error).toBeInstanceOf(StorageError);
  return error as StorageError;
}
