import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { buildBundle } from '../support/bundle.ts';
import type { Bundle } from '../support/bundle.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { allEnded, serveWorkers } from '../support/served-workers.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

let bundle: Bundle;
beforeAll(async () => {
  bundle = await buildBundle();
});
afterAll(() => bundle.remove());

describe('the bundle', () => {
  test.skipIf(postgresAbsence !== null)('serves from two workers over PostgreSQL', async () => {
    const upstream = await startUpstream();
    upstream.play(sayTexts(['one ', 'two']));
    const database = await createDatabase();
    const served = await serveWorkers({
      databaseUrl: database.url,
      upstreamUrl: upstream.url,
      program: bundle.program,
    });
    onTestFinished(async () => {
      const pids = served.pids();
      served.server.signal('SIGKILL');
      await allEnded(pids);
      await upstream.close();
      await database.drop();
    });
    expect(served.pids()).toHaveLength(2);
    const answer = await served.ask();
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('one ');
    served.server.signal('SIGTERM');
    expect((await served.server.finished).code).toBe(0);
  });
});
