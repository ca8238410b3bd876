import { createDatabase, postgresAbsence } from '../../support/test-postgres.ts';
import type { TestDatabase } from '../../support/test-postgres.ts';
import { PostgresServer } from './postgres-server.ts';
import type { RunningSubject, Subject, SubjectSetting } from './subject.ts';
import { createKeys, startTextgate } from './textgate.ts';

/** The scenarios in which storage takes a part. */
const scenarios = ['whole', 'whole1', 'whole4', 'settled', 'burst', 'one', 'open', 'statements'];

/** How many gateways share a database, and how many keys have a balance in it. */
export const mostNodes = 4;
export const manyKeys = 1_000;

/** The gateway of a checkout on a PostgreSQL database of its own, as `createTextgate` has it on a file. */
export function createPostgres(name: string, checkout: string): Subject {
  return {
    name,
    isTextgate: true,
    only: scenarios,
    start: (setting) =>
      onDatabase(async (database, server) => {
        const running = await startTextgate(checkout, setting, database.url);
        return { ...running, shared: { url: database.url, server, others: [], keys: [] } };
      }),
  };
}

/** Several gateways on one database with many keys, for the one scenario that spreads its load over them. */
export function createNodes(checkout: string): Subject {
  return {
    name: 'nodes',
    isTextgate: true,
    only: ['nodes'],
    start: (setting) => onDatabase((database, server) => startNodes(checkout, setting, database, server)),
  };
}

/** How many processes serve the port of each of these. One alone is measured beside them, with the same keys. */
export const workerSubjects = [1, 2, 4].map((workers) => ({ name: `workers-${workers}`, workers }));

/** A gateway of several workers on a database with many keys, for the one scenario that measures them. */
export function createWorkers({ name, workers }: (typeof workerSubjects)[number], checkout: string): Subject {
  return {
    name,
    isTextgate: true,
    only: ['workers'],
    start: (setting) =>
      onDatabase(async ({ url }, server) => {
        const running = await startTextgate(checkout, setting, url, workers);
        try {
          const keys = await createKeys(running.adminPort, manyKeys);
          return { ...running, shared: { url, server, others: [], keys } };
        } catch (error) {
          await running.close();
          throw error;
        }
      }),
  };
}

async function startNodes(
  checkout: string,
  setting: SubjectSetting,
  { url }: TestDatabase,
  server: PostgresServer,
): Promise<RunningSubject> {
  const nodes: Awaited<ReturnType<typeof startTextgate>>[] = [];
  const close = async (): Promise<void> => void (await Promise.all(nodes.map((node) => node.close())));
  try {
    while (nodes.length < mostNodes) nodes.push(await startTextgate(checkout, setting, url));
    const [first, ...others] = nodes;
    if (first === undefined) throw new Error('there are no nodes');
    const keys = await createKeys(first.adminPort, manyKeys);
    return { ...first, shared: { url, server, others, keys }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Starts something on a database of its own, which is dropped when it is closed or can't be started. */
async function onDatabase(
  startOn: (database: TestDatabase, server: PostgresServer) => Promise<RunningSubject>,
): Promise<RunningSubject> {
  if (postgresAbsence !== null) throw new Error(postgresAbsence);
  const database = await createDatabase();
  const server = await PostgresServer.open(database.url);
  const drop = async (): Promise<void> => {
    await server.close();
    await database.drop();
  };
  try {
    const running = await startOn(database, server);
    return {
      ...running,
      async close() {
        await running.close();
        await drop();
      },
    };
  } catch (error) {
    await drop();
    throw error;
  }
}
