import { expect, test } from 'vitest';
import { entries, openAudit } from '../support/audit-scene.ts';
import { openTestEngine } from '../support/test-engine.ts';

test.each([
  ['replaces an older one', 3],
  ['replaces the last one', 5],
  ['leaves a gap', 7],
])('a line of the audit that %s is refused by SQLite, and the next one is taken', async (_what, number) => {
  const { engine, trail, lines } = await openAudit({
    open: async () => openTestEngine(':memory:'),
    unprotect: () => [],
  });
  await trail.add(entries(5));
  const before = await lines();
  const columns = 'created_at, way, actor, address, action, key_id, subject, result, times, changes';
  const forged = `INSERT OR REPLACE INTO audit_lines (number, ${columns})
    SELECT ${number}, ${columns.replace('actor', "'eve'")} FROM audit_lines WHERE number = 3`;
  await expect(engine.run([{ sql: forged, values: [] }])).rejects.toThrow('the audit is append-only');
  expect(await lines()).toEqual(before);
  await trail.add(entries(1));
  expect((await lines()).at(-1)?.number).toBe(6);
});
