import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { startAdmin } from '../support/fake-admin.ts';
import { runCommand } from '../support/run-command.ts';

// It waits for longer than other commands do; backup.test.ts has the small case, with a limit of its own.
test('ledger verify waits for an answer that takes longer than ten seconds', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>();
  const verifying = runCommand(['ledger', 'verify'], undefined, await startAdmin(resolve));
  const response = await asked;
  setTimeout(() => response.end('{"accounts":3,"records":7,"faults":[]}'), 11_000);
  expect(await verifying).toMatchObject({ code: 0, stdout: 'the ledger balances: 3 accounts, 7 records\n' });
});
