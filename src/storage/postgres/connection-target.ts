import type { ClientConfig } from 'pg';
import { StorageError } from '../../domain/storage-refusal.ts';

/** Where a database is, and its name for messages, which has no password. */
export interface ConnectionTarget {
  readonly config: Pick<ClientConfig, 'connectionString'>;
  readonly name: string;
}

/** Reads `postgres://user:password@host:port/database?sslmode=…`. Throws when it is no such URL. */
export function readTarget(text: string): ConnectionTarget {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol))
    throw new StorageError(
      'storage.url is no URL of a PostgreSQL database: postgres://user@host:5432/database',
    );
  const user = url.username === '' ? '' : `${url.username}@`;
  return { config: { connectionString: text }, name: `postgres://${user}${url.host}${url.pathname}` };
}
