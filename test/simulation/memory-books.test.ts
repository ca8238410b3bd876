import { openTimedSqlite } from '../support/timed-sqlite.ts';
import { describeBooks } from './describe-books.ts';

describeBooks('SQLite', () => openTimedSqlite(':memory:'));
