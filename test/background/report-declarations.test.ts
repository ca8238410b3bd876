import { expect, test } from 'vitest';
import { reportDeclarations } from '../../src/background/report-declarations.ts';
import type { LogFields } from '../../src/domain/ports/telemetry.ts';

const nothing = { changed: [], removed: [], renamed: [], adopted: [], unfunded: [], refused: [] };

async function linesOf(report: Partial<typeof nothing> | object, anyActive: () => Promise<boolean>) {
  const lines: string[] = [];
  const write =
    (level: string) =>
    (message: string, { names = [] }: LogFields = {}): void =>
      void lines.push(`${level} ${message}: ${names.join()}`);
  await reportDeclarations({ ...nothing, ...report }, anyActive, {
    info: write('info'),
    notice: write('notice'),
    fault: (message, error, { names = [] } = {}) =>
      void lines.push(
        `fault ${message}: ${error instanceof Error ? error.message : String(error)}: ${names.join()}`,
      ),
  });
  return lines;
}

test('changes of declared keys are logged with at most 20 names: created ones at level info, all others as notices', async () => {
  const many = Array.from({ length: 22 }, (_, number) => `key${number}`);
  const report = {
    changed: ['bob'],
    renamed: ['robert'],
    adopted: ['ann'],
    unfunded: many,
    refused: ['eve'],
  };
  expect(await linesOf(report, async () => true)).toEqual([
    'info declared keys created or changed: bob',
    'notice declared keys renamed, with their accounts: robert',
    'notice issued keys are declared now, and their earlier secrets are refused even in a grace period: ann',
    'notice declared keys have a balance of 0, because their secrets were those of other keys with a balance; ' +
      'undoing the change does not undo it: credit them, or declare new ones, with other names and secrets: ' +
      `${many.slice(0, 20).join()},2 more`,
    'fault declared keys refused: their secrets were revoked or rotated: eve',
  ]);
});

test('keys that are revoked are named, and what to do is said when no active key is left', async () => {
  const [revoked, ...more] = await linesOf({ removed: ['environment'] }, async () => true);
  expect([revoked, more]).toEqual([
    expect.stringMatching(/^notice keys revoked.*TEXTGATE_KEY.*: environment$/),
    [],
  ]);
  const [, advice] = await linesOf({ removed: ['environment'] }, async () => false);
  expect(advice).toMatch(/^notice no active key is left.*keys create/);
  const unread = linesOf({ removed: ['a'] }, () => Promise.reject(new Error('locked')));
  expect((await unread)[1]).toBe('fault the keys could not be read: locked: ');
});
