import type { PostgresServer } from './postgres-server.ts';

/** What a subject is started with. */
export interface SubjectSetting {
  /** The port of the simulated upstream. */
  readonly simulatorPort: number;
  /** A folder of its own for its files. */
  readonly folder: string;
  /** The most files that it may have open; null keeps the limit of this process. */
  readonly openFiles: number | null;
}

/** A gateway, a proxy or nothing at all between the load generator and the simulated upstream. */
export interface RunningSubject {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Headers by which it tries two failing upstreams first; null where it can't. */
  readonly failoverHeaders: Readonly<Record<string, string>> | null;
  /** Its process; null for the direct connection. */
  readonly pid: number | null;
  /** The arguments with which Node runs its command line; null where it has none. */
  readonly commandLine: readonly string[] | null;
  /** The SQLite file of its own in which it keeps what it charges; null where it has none. */
  readonly databaseFile: string | null;
  /** How long it took from its start until it was ready, in milliseconds. */
  readonly startMs: number;
  /** What it shares with other gateways; null where it has its database alone, or none. */
  readonly shared: SharedDatabase | null;
  close(): Promise<void>;
}

/** A database in PostgreSQL, and what uses it. */
interface SharedDatabase {
  readonly url: string;
  readonly server: PostgresServer;
  /** The other gateways on it. */
  readonly others: readonly RunningSubject[];
  /** Keys with balances in it; none where the subject's headers have its only key. */
  readonly keys: readonly string[];
}

export interface Subject {
  /** Its name on the command line, in tables and in the raw data. */
  readonly name: string;
  /** Whether it is this gateway: from this checkout or another one. */
  readonly isTextgate: boolean;
  /** The names of the scenarios that it runs; null for all that it can. */
  readonly only: readonly string[] | null;
  /** Starts it. Throws an error that says why it can't be started here. */
  start(setting: SubjectSetting): Promise<RunningSubject>;
}
