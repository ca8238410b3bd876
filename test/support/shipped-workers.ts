import { expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { sayTexts, startUpstream } from './scripted-upstream.ts';
import { allEnded, serveWorkers } from './served-workers.ts';
import { createDatabase, postgresAbsence } from './test-postgres.ts';

/** The test of several workers of a program in a form in which it is shipped; `program` is the path of its file. */
export function testShippedWorkers(program: () => string): void {
  test.skipIf(postgresAbsence !== null)(
    'serves from two workers over PostgreSQL, and replaces one that ends',
    async () => {
      const upstream = await startUpstream();
      upstream.play(sayTexts(['one ', 'two']));
      const database = await createDatabase();
      const served = await serveWorkers({
        databaseUrl: database.url,
        upstreamUrl: upstream.url,
        program: program(),
      });
      onTestFinished(async () => {
        const pids = served.pids();
        served.server.signal('SIGKILL');
        await allEnded(pids);
        await upstream.close();
        await database.drop();
      });
      const expectAnswer = async (): Promise<void> => {
        const answer = await served.ask();
        expect(answer.status).toBe(200);
        expect(answer.text).toContain('one ');
      };
      const [first = 0, ...others] = served.pids();
      expect(others).toHaveLength(1);
      await expectAnswer();
      process.kill(first, 'SIGKILL');
      await eventually('there is another worker', () => {
        const pids = served.pids();
        return pids.length === 2 && !pids.includes(first);
      });
      await expectAnswer();
      served.server.signal('SIGTERM');
      expect((await served.server.finished).code).toBe(0);
    },
  );
}
