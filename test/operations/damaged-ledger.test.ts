import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { createMaintenance } from '../../src/operations/maintenance.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { fillDatabase } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';

test('a verification of a damaged database says that it is damaged, and the command that restores a backup', async () => {
  const path = join(makeTemporaryFolder(), 'textgate.db');
  const first = openTestEngine(path);
  await first.ready;
  await first.close();
  fillDatabase(path, { keys: 20, records: 2_000 });
  const engine = openTestEngine(path);
  onTestFinished(() => engine.close().catch(() => {}));
  await engine.ready;
  const page = 4_096;
  const damage = Buffer.alloc(statSync(path).size - 2 * page, 0xff);
  const file = openSync(path, 'r+');
  writeSync(file, damage, 0, damage.length, 2 * page);
  closeSync(file);
  const maintenance = createMaintenance(createLedgerAudit(engine), engine, '', systemClock);
  expect(await maintenance.verifyLedger(new AbortController().signal)).toMatchObject({
    code: 'storage_unavailable',
    message: expect.stringMatching(
      /database file is damaged: .*malformed.*restore a backup.*\n {2}textgate restore BACKUP$/,
    ) as string,
  });
});
