import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { describeError } from '../../src/cli/describe-error.ts';
import { systemClock } from '../../src/composition/clock.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import type { PostgresEngine, PostgresOptions } from '../../src/storage/postgres/engine.ts';
import { atEndOfFile } from './end-of-file.ts';
import { runSql } from './run-sql.ts';
import { isOnlyListed } from './services.ts';
import { bringBack, readBeginning, rename } from './used-databases.ts';
import type { Beginning } from './used-databases.ts';

/** A server on which tests may make databases of their own. */
const server = process.env['TEXTGATE_TEST_POSTGRES'] ?? 'postgres://postgres@127.0.0.1:5432/postgres';

/** How long a busy server may take to answer, in milliseconds. */
const patienceMs = 60_000;
/** The pause between two tries, in milliseconds. */
const lookMs = 200;

/** The codes of errors that mean that there is no server for tests: a refused connection, no such host or database, no access. */
const absences = /^(?:ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|3D000|28\w{3})$/;

/** Why tests on PostgreSQL are skipped here; `null` where they are run. */
export const postgresAbsence = isOnlyListed ? null : await whyAbsent();

async function whyAbsent(): Promise<string | null> {
  for (const startMs = performance.now(); ; await wait(lookMs)) {
    try {
      await onServer('SELECT 1');
      return null;
    } catch (error) {
      // A server that is there, but busy or starting, is no reason for a skip, which is easily overlooked.
      const isAbsent = absences.test(String((error as { readonly code?: unknown }).code));
      const isLate = performance.now() - startMs > patienceMs;
      if (!isAbsent && !isLate) continue;
      if (!isAbsent || process.env['REQUIRE_SERVICES'] === '1') throw error;
      return `needs a PostgreSQL server: TEXTGATE_TEST_POSTGRES=postgres://user@host/database (${describeError(error)})`;
    }
  }
}

/** Runs a statement on the server's own database, or on another one. */
export function onServer(sql: string, url = server): Promise<readonly Record<string, unknown>[]> {
  return runSql(sql, url);
}

/** A database of a test's own. */
export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  drop(): Promise<void>;
}

/** Makes an empty database, on the server of all tests or on another one. */
export async function createDatabase(on = server): Promise<TestDatabase> {
  const name = newName();
  await onServer(`CREATE DATABASE ${name}`, on);
  return testDatabase(name, on);
}

function newName(): string {
  return `textgate_test_${randomUUID().replaceAll('-', '')}`;
}

function testDatabase(name: string, on = server): TestDatabase {
  const url = new URL(on);
  url.pathname = name;
  return {
    name,
    url: url.href,
    drop: async () => void (await onServer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`, on)),
  };
}

/** An engine on a database that no other test uses meanwhile. */
export type OwnPostgres = PostgresEngine & { readonly database: TestDatabase };

/** A database that a test has used, and that the next one may get. */
interface UsedDatabase {
  readonly database: TestDatabase;
  readonly beginning: Beginning;
}

/**
 * Databases with the product's schema, one for each test. Those whose tests changed nothing but rows are emptied for the
 * next tests of the file: to make and to drop one are a thousand files each.
 */
export class DatabasePool {
  readonly #used: UsedDatabase[] = [];
  readonly #prepare: (engine: PostgresEngine) => Promise<void>;

  /** `prepare` changes each new database before its first test. */
  constructor(prepare: (engine: PostgresEngine) => Promise<void> = () => Promise.resolve()) {
    this.#prepare = prepare;
  }

  /** An engine on a database of its own, which is given back when the engine is closed. */
  async open(options: Partial<PostgresOptions> = {}): Promise<OwnPostgres> {
    const used = await this.#takeUsed();
    const database = used?.database ?? (await createDatabase());
    const engine = createPostgresEngine({ url: database.url, clock: systemClock, ...options });
    await engine.ready;
    if (used === null) await this.#prepare(engine);
    const beginning = used?.beginning ?? (await readBeginning(database.url));
    let isClosed = false;
    return Object.assign(Object.create(engine) as PostgresEngine, {
      database,
      close: async () => {
        await engine.close();
        if (isClosed) return;
        isClosed = true;
        await this.#giveBack({ database, beginning });
      },
    });
  }

  async #takeUsed(): Promise<UsedDatabase | null> {
    const used = this.#used.pop();
    if (used === undefined) return null;
    const database = testDatabase(newName());
    try {
      await rename(server, used.database.name, database.name);
      if (await bringBack(database.url, used.beginning)) return { ...used, database };
    } catch {
      // A test may have left a database that takes no connections.
    }
    await Promise.all([used.database.drop(), database.drop()]);
    return null;
  }

  async #giveBack(used: UsedDatabase): Promise<void> {
    const isFirst = this.#used.push(used) === 1;
    if (isFirst && !atEndOfFile(() => this.#dropAll())) await this.#dropAll();
  }

  async #dropAll(): Promise<void> {
    for (const { database } of this.#used.splice(0)) await database.drop();
  }
}

const pool = new DatabasePool();

/** An engine on a database of its own, with the product's schema. */
export function openPostgres(options: Partial<PostgresOptions> = {}): Promise<OwnPostgres> {
  return pool.open(options);
}
