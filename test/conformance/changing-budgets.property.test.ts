import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { describeChangingBudgets } from './changing-budgets.ts';
import type { HistoryDatabase } from './changing-budgets.ts';

/** A file, of which a killed process leaves a copy: whatever it does afterwards is not in it. */
function onFile(path = join(makeTemporaryFolder(), 'textgate.db')): HistoryDatabase {
  return {
    storage: { url: `sqlite:${path}`, durability: 'normal' },
    async kill() {
      const copy = join(makeTemporaryFolder(), 'textgate.db');
      const database = new DatabaseSync(path);
      database.exec(`VACUUM INTO '${copy}'`);
      database.close();
      return { database: onFile(copy), isShared: false };
    },
    async audit() {
      const engine = openTestEngine(path);
      await engine.ready;
      return engine;
    },
    close: async () => {},
  };
}

describeChangingBudgets('SQLite', async () => onFile(), 3);
