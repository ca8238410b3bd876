import { openTestEngine } from '../support/test-engine.ts';
import { openTimedSqlite } from '../support/timed-sqlite.ts';
import { describeLeases } from './leases.ts';
import { describeStore } from './store.ts';

describeStore('SQLite in memory', async () => {
  const engine = openTestEngine(':memory:');
  await engine.ready;
  return engine;
});
describeLeases('SQLite in memory', () => openTimedSqlite(':memory:'));
