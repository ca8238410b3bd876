import { describe, expect, test } from 'vitest';
import { linkAuditLine, startOfAudit } from '../../src/domain/audit/audit-line.ts';
import { noPause } from '../../src/domain/pause.ts';
import type { HashedLine } from '../../src/domain/ports/audit.ts';
import { createAuditChain } from '../../src/storage/audit/audit-chain.ts';
import { entries, openAudit, startMs } from '../support/audit-scene.ts';
import type { AuditDatabase } from '../support/audit-scene.ts';

const hourMs = 3_600_000;

/** How the chain over the lines of the audit shows what was done to them, and how old ones are removed, over every engine. */
export function describeAuditChain(name: string, database: AuditDatabase): void {
  describe(`${name}: the chain of the audit`, () => {
    describeChain(database);
  });
  describe(`${name}: old lines of the audit`, () => {
    describeRetention(database);
  });
}

function describeChain(database: AuditDatabase): void {
  test('is in each root, with which it grows, and is no account', async () => {
    const { trail, makeRoot, faults } = await openAudit(database);
    expect(await makeRoot()).toBeNull();
    await trail.add(entries(1_200));
    const first = await makeRoot();
    expect(first).toMatchObject({ number: 1, accounts: 0 });
    const same = await makeRoot();
    expect([same?.tree, same?.previous]).toEqual([first?.tree, first?.hash]);
    await trail.add(entries(1));
    expect((await makeRoot())?.tree).not.toBe(first?.tree);
    expect(await faults()).toEqual([]);
  });

  test.each([
    [
      "UPDATE audit_lines SET actor = 'eve' WHERE number = 3",
      'the lines of the audit up to 5 are not those that were sealed',
    ],
    [
      "UPDATE audit_lines SET changes = '[]', result = 'x' WHERE number = 5",
      'the lines of the audit up to 5 are not those',
    ],
    [
      'UPDATE audit_lines SET created_at = created_at + 1 WHERE number = 1',
      'the lines of the audit up to 5 are not those',
    ],
    [
      'UPDATE audit_lines SET address = NULL WHERE number = 7',
      'the lines of the audit up to 8 are not those',
    ],
    ['DELETE FROM audit_lines WHERE number = 1', 'line 1 of the audit is missing'],
    ['DELETE FROM audit_lines WHERE number = 3', 'line 3 of the audit is missing'],
    ['DELETE FROM audit_lines WHERE number > 7', 'line 8 of the audit is missing'],
    ['DELETE FROM audit_lines WHERE number = 10', 'line 10 of the audit is missing'],
    ['DELETE FROM audit_lines', 'line 1 of the audit is missing'],
    ['UPDATE audit_lines SET number = 11 WHERE number = 9', 'line 9 of the audit is missing'],
    [
      'UPDATE audit_chain SET removed = 4',
      'the seal of the lines that were removed from the audit is missing',
    ],
  ])('shows %s', async (sql, fault) => {
    const { trail, makeRoot, faults, tamper } = await openAudit(database);
    await trail.add(entries(5));
    await makeRoot();
    await trail.add(entries(3));
    await makeRoot();
    await trail.add(entries(2));
    expect(await faults()).toEqual([]);
    await tamper(sql);
    expect((await faults()).join()).toContain(fault);
  });

  test('shows a line that was changed together with its seal: the head of the root is another one', async () => {
    const { trail, makeRoot, faults, tamper, engine } = await openAudit(database);
    await trail.add(entries(3));
    await makeRoot();
    await tamper("UPDATE audit_lines SET actor = 'eve' WHERE number = 2");
    const [line] = (await trail.list({}, 3, null)).lines
      .toReversed()
      .reduce<readonly string[]>(([hash = ''], one) => [linkAuditLine(hash, one)], [startOfAudit]);
    await engine.run([
      { sql: "UPDATE ledger_seals SET hash = ? WHERE key_id = 'audit' AND number = 3", values: [line ?? ''] },
    ]);
    expect((await faults()).join()).toContain('the seal of line 3 of the audit is not the head of its root');
  });

  test('shows lines that were removed with their count: the root has the last one', async () => {
    const { trail, makeRoot, faults, tamper } = await openAudit(database);
    await trail.add(entries(5));
    await makeRoot();
    await tamper('DELETE FROM audit_lines WHERE number > 3');
    await tamper('UPDATE audit_chain SET last = 3');
    expect(await faults()).toEqual(['line 4 of the audit is missing']);
  });
}

function describeRetention(database: AuditDatabase): void {
  test('are not removed without a line that says so, and are missed where triggers were taken away for it', async () => {
    const { trail, makeRoot, faults, tamper, engine, lines } = await openAudit(database);
    await trail.add(entries(5));
    await makeRoot();
    const removal = 'UPDATE audit_chain SET removed = 5';
    await expect(engine.run([{ sql: removal, values: [] }])).rejects.toThrow(
      'no line says that they are removed',
    );
    await tamper(removal);
    await tamper('DELETE FROM audit_lines WHERE number <= 5');
    expect(await lines()).toEqual([]);
    expect((await faults()).join()).toContain(
      'the line that says that those of the audit up to 5 were removed is missing',
    );
  });

  test('are removed up to a seal before which all are old, and are in the archive with their hashes', async () => {
    const { trail, auditChain, makeRoot, faults, pass, lines } = await openAudit(database);
    for (let hour = 0; hour < 5; hour++) {
      await trail.add(entries(3));
      await makeRoot();
      pass(hourMs);
    }
    const archived: HashedLine[] = [];
    const archive = { append: async (some: readonly HashedLine[]) => void archived.push(...some) };
    expect(await auditChain.removeBefore(startMs, archive, noPause)).toBe(0);
    expect(await auditChain.removeBefore(startMs + 2 * hourMs, archive, noPause)).toBe(6);
    expect(archived.map(({ number, hash }) => [number, hash.length])).toEqual(
      [1, 2, 3, 4, 5, 6].map((at) => [at, 64]),
    );
    expect((await lines()).map(({ number }) => number)).toEqual([7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    expect((await lines()).at(-1)).toMatchObject({ action: 'audit.remove', subject: '6', times: 6 });
    expect(await faults()).toEqual([]);
    await trail.add(entries(1));
    expect((await lines()).at(-1)?.number).toBe(17);
    // The last lines are not sealed yet.
    expect(await auditChain.removeBefore(startMs + 90 * hourMs, null, noPause)).toBe(9);
    expect((await lines()).map(({ number }) => number)).toEqual([16, 17, 18]);
    await makeRoot();
    expect(await auditChain.removeBefore(startMs + 90 * hourMs, null, noPause)).toBe(3);
    expect(await faults()).toEqual([]);
    await trail.add(entries(1));
    expect((await lines()).map(({ number }) => number)).toEqual([19, 20]);
    expect(await faults()).toEqual([]);
  });

  test('are removed some hundred at a time, however many came between two roots', async () => {
    const { trail, auditChain, makeRoot, faults, pass, lines } = await openAudit(database);
    await trail.add(entries(700));
    pass(hourMs);
    await trail.add(entries(500));
    await makeRoot();
    const steps: number[] = [];
    const archive = { append: async (some: readonly HashedLine[]) => void steps.push(some.length) };
    // The next seal has young lines before it.
    expect(await auditChain.removeBefore(startMs + hourMs, archive, noPause)).toBe(500);
    expect((await lines()).length).toBe(701);
    expect(await faults()).toEqual([]);
    expect(await auditChain.removeBefore(startMs + 9 * hourMs, archive, noPause)).toBe(700);
    expect(steps).toEqual([500, 500, 200]);
    expect(await faults()).toEqual([]);
  });

  test('are removed with a pause after each step, in which a stop ends it', async () => {
    const { trail, auditChain, makeRoot, faults } = await openAudit(database);
    await trail.add(entries(3));
    await makeRoot();
    const stopping = (): Promise<void> => Promise.reject(new Error('it stops'));
    await expect(auditChain.removeBefore(startMs + hourMs, null, stopping)).rejects.toThrow('it stops');
    expect(await faults()).toEqual([]);
  });

  test('are no fault where another process removes them at the same time', async () => {
    const { trail, auditChain, makeRoot, engine, lines } = await openAudit(database);
    await trail.add(entries(700));
    await makeRoot();
    const removeAll = (chain: typeof auditChain) => chain.removeBefore(startMs + hourMs, null, noPause);
    const others: Promise<number>[] = [];
    const late = createAuditChain(
      {
        run: (unit) => engine.run(unit),
        async read(statements) {
          const found = await engine.read(statements);
          if (others.length === 0) others.push(removeAll(auditChain));
          await Promise.all(others);
          return found;
        },
      },
      () => startMs,
    );
    expect([await removeAll(late), await Promise.all(others)]).toEqual([0, [700]]);
    expect((await lines()).map(({ subject }) => subject)).toEqual(['500', '700']);
  });

  test('stay where one of them was changed, or the archive does not take them', async () => {
    const { trail, auditChain, makeRoot, pass, lines, tamper } = await openAudit(database);
    await trail.add(entries(3));
    await makeRoot();
    pass(hourMs);
    const full = { append: () => Promise.reject(new Error('the disk is full')) };
    await expect(auditChain.removeBefore(startMs + 9, full, noPause)).rejects.toThrow('the disk is full');
    await tamper("UPDATE audit_lines SET actor = 'eve' WHERE number = 2");
    await expect(auditChain.removeBefore(startMs + 9, null, noPause)).rejects.toThrow(
      'the lines of the audit up to 3 are not those that were sealed',
    );
    expect(await lines()).toHaveLength(3);
  });
}
