import { openTestEngine } from '../support/test-engine.ts';
import { describeSql } from './describe-sql.ts';

describeSql('SQLite', async () => openTestEngine(':memory:'));
