import type { Constructors } from './metric-constructors.ts';

/** Whether the database can be used, and what it takes. */
export function databaseInstruments({ gauge }: Constructors) {
  return {
    databaseUsable: gauge(
      'textgate_database_usable',
      'Whether the database takes writes and its file is the one that was opened, and undamaged: 1; else 0, and new requests are refused.',
    ),
    logBytes: gauge(
      'textgate_database_log_bytes',
      'Size of the write-ahead log of the SQLite database; absent with PostgreSQL and in memory.',
    ),
  };
}
