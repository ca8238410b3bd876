import { describe, expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';
import { describeUsage } from './describe-usage.ts';

describe.skipIf(postgresAbsence !== null)('usage on PostgreSQL', () => {
  describeUsage(createDatabase);
});

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;
test.skipIf(postgresAbsence !== null)(
  `of two nodes, one has the keys that were charged most in its metrics, and both have the same usage${absent}`,
  async () => {
    const database = await createDatabase();
    const upstream = await startUpstream();
    upstream.play(sayTexts(['a']));
    const start = (topKeys: number) =>
      startGateway({
        upstreamUrl: upstream.url,
        databaseUrl: database.url,
        spool: makeTemporaryFolder(),
        price: { input: '1', output: '2' },
        metrics: { topKeys },
      });
    const first = await start(0);
    const nodes = [first];
    onTestFinished(async () => {
      await Promise.all(nodes.map((node) => node.close()));
      await upstream.close();
      await database.drop();
    });
    await (await first.post('/v1/responses', { model: 'small', input: 'x' })).text();
    nodes.push(await start(3), await start(3));
    const seriesOf = async ({ adminUrl }: TestGateway) =>
      (await (await fetch(`${adminUrl}/metrics`)).text()).match(/^textgate_top_keys\w+\{.*$/gm) ?? [];
    const shown = async () => (await Promise.all(nodes.map(seriesOf))).flat();
    await eventually('a node shows the key', async () => (await shown()).length > 0);
    expect(await shown()).toEqual([
      expect.stringMatching(
        /^textgate_top_keys_charged_today_nanos\{key_id="key_\w+",key_name="test"\} 25000$/,
      ),
    ]);
    expect(await seriesOf(first)).toEqual([]);
    const read = async (node: TestGateway) => (await askAdmin(node, 'GET', '/usage?by=day,key')).text;
    expect(await Promise.all(nodes.map(read))).toEqual(Array(3).fill(await read(first)));
  },
);
