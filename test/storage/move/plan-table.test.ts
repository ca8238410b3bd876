import { describe, expect, test } from 'vitest';
import { checkTables, planTable } from '../../../src/storage/move/table-plan.ts';
import type { TargetColumn } from '../../../src/storage/move/table-plan.ts';

const column = (name: string, settings: Partial<TargetColumn> = {}): TargetColumn => ({
  name,
  type: 'text',
  isNullable: false,
  hasDefault: false,
  ...settings,
});

describe('what is copied of a table', () => {
  test('is every column of the source, with its type in the target', () => {
    const target = [column('b', { type: 'bigint', isNullable: true }), column('a')];
    expect(planTable('accounts', ['a', 'b'], target)).toEqual({
      table: 'accounts',
      columns: [
        { name: 'a', type: 'text', isNullable: false },
        { name: 'b', type: 'bigint', isNullable: true },
      ],
    });
  });

  test('is refused where a column has no counterpart, or one that can not hold its values', () => {
    expect(() => planTable('ledger_rows', ['a', 'b'], [column('a')])).toThrow(
      'ledger_rows.b has no counterpart in PostgreSQL',
    );
    expect(() => planTable('ledger_rows', ['a'], [column('a'), column('c')])).toThrow(
      'ledger_rows.c has no counterpart in SQLite, and needs a value',
    );
    expect(() => planTable('ledger_rows', ['a'], [column('a', { type: 'boolean' })])).toThrow(
      "ledger_rows.a has the type boolean, which can't be copied",
    );
    const optional = [column('c', { hasDefault: true }), column('d', { isNullable: true })];
    expect(planTable('ledger_rows', ['a'], [column('a'), ...optional]).columns).toHaveLength(1);
  });

  test('is refused for a table that nothing is known of', () => {
    checkTables(['migrations', 'owners', 'open_rows', 'api_keys', 'ledger_rows', 'sqlite_stat1']);
    expect(() => checkTables(['api_keys', 'notes'])).toThrow("tables that this version can't move: notes");
  });
});
