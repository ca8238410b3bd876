import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
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

/** The `StorageError` that a promise is rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.then(
    () => null,
    (fault: unknown) => fault,
  );
  expect(error).toBeInstanceOf(StorageError);
  return error as StorageError;
}
