import { join } from 'node:path';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { say } from './engine.ts';
import { describeStatements } from './statements.ts';

describeStatements(
  'SQLite in a file',
  async () => openTestEngine(join(makeTemporaryFolder(), 'textgate.db')),
  async (engine, table) => {
    const [triggers = []] = await engine.read([
      say(`SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '${table}'`),
    ]);
    await engine.run(triggers.map(({ name }) => say(`DROP TRIGGER ${name}`)));
  },
);
