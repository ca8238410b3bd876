import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, onTestFinished } from 'vitest';
import type { Engine } from '../../src/storage/engine.ts';
import { openTimedSqlite } from '../support/timed-sqlite.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine, openThreadedEngine } from '../support/test-engine.ts';
import { describeAudit } from './audit.ts';
import { describeDeclarations } from './declarations.ts';
import { describeManyDeclarations } from './many-declarations.ts';
import { createItems, describeEngine, say } from './engine.ts';
import { describeClaimRows } from './claims.ts';
import { describeFixedUnits } from './fixed-units.ts';
import { describeHistory } from './history.ts';
import { describeKeyPages } from './key-pages.ts';
import { describeLeases } from './leases.ts';
import { describeOutbox } from './outbox.ts';
import { describePrepaidSecrets } from './prepaid-secrets.ts';
import { describeRefusals } from './refusals.ts';
import { describeRetention } from './retention.ts';
import { describeStore } from './store.ts';
import { describeTokenUse } from './token-use.ts';

/** A database without rows. Its tables and triggers are made once: that takes longer than most tests here. */
const emptyFolder = mkdtempSync(join(tmpdir(), 'textgate-'));
const empty = join(emptyFolder, 'textgate.db');
const making = openTestEngine(empty);
await making.ready;
await making.close();
afterAll(() => rmSync(emptyFolder, { recursive: true }));

/** A file of the test's own that is such a database. */
function makeFile(): string {
  const file = join(makeTemporaryFolder(), 'textgate.db');
  copyFileSync(empty, file);
  return file;
}

async function open(openEngine = openTestEngine): Promise<Engine> {
  const engine = openEngine(makeFile());
  await engine.ready;
  return engine;
}

describeEngine('SQLite in a file', {
  open: () => open(openThreadedEngine),
  passingFaults: {
    async locked() {
      const path = makeFile();
      const engine = openThreadedEngine(path);
      await engine.run([createItems]);
      const other = new DatabaseSync(path);
      other.exec('BEGIN IMMEDIATE');
      onTestFinished(() => other.close());
      return engine;
    },
    async full() {
      const engine = await open();
      await engine.run([createItems]);
      await engine.run([say('PRAGMA max_page_count = 1')]);
      return engine;
    },
    async closed() {
      const engine = await open();
      await engine.run([createItems]);
      await engine.close();
      return engine;
    },
  },
});

describeFixedUnits('SQLite in a file', () => open());
describeStore('SQLite in a file', () => open());
describeAudit('SQLite in a file', {
  open: () => open(),
  unprotect: (_table, triggers) => triggers.map((trigger) => `DROP TRIGGER IF EXISTS ${trigger}`),
});
describeKeyPages('SQLite in a file', () => open());
describeClaimRows('SQLite in a file', () => openTimedSqlite(makeFile()));
describeLeases('SQLite in a file', () => openTimedSqlite(makeFile()));
describeDeclarations('SQLite in a file', () => open());
describeManyDeclarations('SQLite in a file', () => open());
describePrepaidSecrets('SQLite in a file', () => open(), 6);
describeRetention('SQLite in a file', open);
describeRefusals('SQLite in a file', open);
describeHistory('SQLite in a file', open);
describeTokenUse('SQLite in memory', () => openTimedSqlite(':memory:'), 15);

describeOutbox('SQLite in memory', () => openTimedSqlite(':memory:'));
