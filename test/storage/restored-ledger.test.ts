import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { saveFile } from '../../src/cli/database/save-file.ts';
import { compareStatements } from '../../src/domain/statements/check-statement.ts';
import { readStatement } from '../../src/domain/statements/read-statement.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { statementsOver } from '../support/statement-tools.ts';
import { payingKey } from '../support/stored-rows.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { storeOver } from '../support/used-database.ts';

/** A database with the statements of its key. */
function openFile(file: string) {
  const engine = openTestEngine(file);
  onTestFinished(() => engine.close());
  const store = storeOver(engine);
  return {
    engine,
    ...statementsOver(engine, () => 1_900_000_000_000),
    pay: (reference: string) => store.credit({ keyId: payingKey.id, nanos: 5, reference }),
    create: () => store.createKey(payingKey, 'hash', 100),
  };
}

test('a restored backup goes on with its own story: who has a statement from before sees two of one number', async () => {
  const folder = makeTemporaryFolder();
  const lost = openFile(join(folder, 'textgate.db'));
  await lost.create();
  await lost.makeRoot();
  const old = await lost.state(payingKey.id);
  const backup = join(folder, 'restored.db');
  const copy = await lost.engine.copy();
  if (copy === null) throw new Error('there is no copy');
  await saveFile(copy.read(), backup);
  await copy.remove();
  const restored = openFile(backup);
  await lost.pay('lost with the disk');
  await lost.makeRoot();
  await restored.pay('paid after the restore');
  await restored.makeRoot();
  const [one, other] = [await lost.state(payingKey.id), await restored.state(payingKey.id)];
  const read = (name: string, text: string) => ({ name, statement: readStatement(text) });
  expect(compareStatements([read('old', old), read('one', one)])).toEqual([]);
  expect(compareStatements([read('old', old), read('other', other)])).toEqual([]);
  expect(compareStatements([read('one', one), read('other', other)])).toEqual([
    'row 2 is another one in other than in one',
    'row 2 is another one in other than in one',
    'root 2 is another one in other than in one',
  ]);
  // The database alone can't know it: it balances, and both statements are signed by the same key.
  expect((await verifyLedger(createLedgerAudit(restored.engine))).faults).toEqual([]);
  expect(readStatement(one).signedBy).toBe(readStatement(other).signedBy);
  expect(await restored.faultsOf(one)).toEqual([]);
});
