import { describe, expect, test } from 'vitest';
import { usePostgresBench } from '../support/postgres-bench.ts';
import { keep, stubEnvironment } from '../support/postgres-connection.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

describe('the environment and ~/.pgpass', () => {
  const bench = usePostgresBench();
  test.skipIf(postgresAbsence !== null)('change nothing of the connection', async () => {
    const { url } = await bench.proxy();
    stubEnvironment();
    const { connection } = keep(url);
    await connection.opened;
    const settings = ['search_path', 'client_encoding', 'application_name', 'default_transaction_read_only'];
    const [answer] = await connection.send([
      { text: `SELECT ${settings.map((name) => `current_setting('${name}') AS ${name}`).join()}` },
    ]);
    expect(answer?.rows).toEqual([
      {
        search_path: '"$user", public',
        client_encoding: 'UTF8',
        application_name: 'textgate',
        default_transaction_read_only: 'off',
      },
    ]);
  });
});
