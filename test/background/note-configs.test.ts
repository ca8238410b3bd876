import { expect, test } from 'vitest';
import { noteConfigs } from '../../src/background/note-configs.ts';
import type { AuditEntry } from '../../src/domain/audit/audit-line.ts';
import { fieldsOf } from '../../src/domain/audit/differences.ts';
import { originAlone } from '../../src/domain/audit/safe-text.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** Notes settings after others, and returns what the line says that differs. */
async function changesAfter(before: object, settings: object): Promise<AuditEntry['changes']> {
  let found: AuditEntry['changes'] = [];
  const { note, stop } = noteConfigs(
    {
      noteConfig: async (_actor, compare) => {
        found = compare(JSON.stringify([...fieldsOf(before)])).changes;
      },
    },
    { ready: Promise.resolve(), clock: createFakeClock(), onFault: () => {} },
  );
  note(fieldsOf(settings));
  await stop();
  return found;
}

test('addresses that an earlier version noted with their paths are compared by their origins', async () => {
  const hook = 'https://hooks.example/T0SECRET';
  const keyed = 'https://api.example/v1?key=(hidden-by-config-show) sha256:0123456789ab';
  const settings = { hook: originAlone(hook), keyed: 'https://api.example sha256:0123456789ab' };
  expect(await changesAfter({ hook, keyed }, settings)).toEqual([]);
  expect(await changesAfter({ hook, keyed }, { ...settings, hook: 'https://hooks.example' })).toEqual([
    { field: 'hook', before: originAlone(hook), after: 'https://hooks.example' },
  ]);
  expect(originAlone(originAlone(hook))).toBe(originAlone(hook));
});
