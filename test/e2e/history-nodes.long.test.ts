import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import type { TestDatabase } from '../support/test-postgres.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'a question' }] };

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
describe.skipIf(postgresAbsence !== null)(`the history of two nodes over one database${absent}`, () => {
  let database: TestDatabase;
  let upstream: ScriptedUpstream;
  beforeAll(async () => {
    database = await createDatabase();
    upstream = await startUpstream();
    upstream.play(sayTexts(['one']));
  });
  afterAll(async () => {
    await upstream.close();
    await database.drop();
  });

  test('is the sum of both, whichever answers, and stays when one of them ends', async () => {
    const clock = createFakeClock(Date.UTC(2030, 0, 31, 12));
    const options = { clock, upstreamUrl: upstream.url, databaseUrl: database.url };
    const [one, other] = await Promise.all([
      startGateway({ ...options, spool: makeTemporaryFolder() }),
      startGateway({ ...options, spool: makeTemporaryFolder() }),
    ]);
    onTestFinished(() => other.close());
    for (const node of [one, other, other]) {
      const answer = await node.post('/v1/chat/completions', body);
      expect(answer.status).toBe(200);
      await answer.text();
    }
    clock.advance(10_000);
    await eventually('both have written the interval', async () => {
      clock.advance(1_000);
      const { points } = (await askAdmin(one, 'GET', '/history')).body;
      return points[0]?.processes === 2;
    });
    const read = async (node: typeof one) => (await askAdmin(node, 'GET', '/history?by=model')).body;
    const [here, there] = [await read(one), await read(other)];
    expect(here.points[0]).toMatchObject({ requests: { completed: 3 } });
    expect(here.points[0].groups).toMatchObject([{ model: 'small', requests: { completed: 3 } }]);
    expect(there.points[0]).toEqual(here.points[0]);
    await one.close();
    clock.advance(3_000);
    const { points, marks } = await read(other);
    expect(points[0]).toEqual(here.points[0]);
    const kinds = marks.map(({ kind }: { kind: string }) => kind);
    expect(kinds).toEqual(['process_began', 'process_began', 'process_ended']);
    expect(marks[0].node).toMatch(/:\d+$/);
  });
});
