import { expect, test } from 'vitest';
import { composeAudit } from '../../src/composition/storage/audit-services.ts';
import { noPause } from '../../src/domain/pause.ts';
import { entries, openAudit, startMs } from '../support/audit-scene.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { openTestEngine } from '../support/test-engine.ts';

const keepMs = 86_400_000;

test('old lines of the audit that were changed are kept, and the log says so', async () => {
  const { engine, trail, makeRoot, lines } = await openAudit({
    open: async () => openTestEngine(':memory:'),
    unprotect: () => [],
  });
  await trail.add(entries(3));
  await makeRoot();
  const faults: string[] = [];
  const onFault = (message: string, error: unknown): void => void faults.push(`${message}: ${String(error)}`);
  const clock = createFakeClock(startMs + 3 * keepMs);
  const basics = { ready: Promise.resolve(), clock, onFault };
  const { removeOld } = composeAudit(engine, basics, () => ({ keepMs, archive: null }));
  for (const sql of [
    'DROP TRIGGER audit_line_is_never_changed',
    "UPDATE audit_lines SET actor = 'eve' WHERE number = 2",
  ])
    await engine.run([{ sql, values: [] }]);
  await removeOld(noPause);
  expect(faults).toEqual([
    'old lines of the audit are kept: ChainError: the lines of the audit up to 3 are not those that were sealed',
  ]);
  await engine.run([{ sql: "UPDATE audit_lines SET actor = 'ada' WHERE number = 2", values: [] }]);
  await removeOld(noPause);
  expect([faults.length, await lines()]).toMatchObject([1, [{ action: 'audit.remove', subject: '3' }]]);
});
