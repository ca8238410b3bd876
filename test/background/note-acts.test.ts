import { expect, test } from 'vitest';
import { noteActs } from '../../src/background/note-acts.ts';
import { keyEntry } from '../../src/domain/audit/audit-line.ts';
import type { Actor, AuditEntry } from '../../src/domain/audit/audit-line.ts';
import type { ReportFault } from '../../src/domain/ports/telemetry.ts';
import { ada, entryOf } from '../support/audit-scene.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const stranger: Actor = { way: 'admin_api', name: null, address: null };
const refusal: AuditEntry = {
  ...entryOf(1),
  actor: stranger,
  action: 'admin.call',
  result: 'invalid_api_key',
};

function keep(add: (entries: readonly AuditEntry[]) => Promise<void>) {
  const clock = createFakeClock();
  const faults: unknown[] = [];
  const onFault: ReportFault = (...fault) => void faults.push(fault);
  return { clock, faults, ...noteActs({ add }, { ready: Promise.resolve(), clock, onFault }) };
}

test('of the refusals of a minute the first 30 have lines, and one line says how many more there were', async () => {
  const lines: AuditEntry[] = [];
  const { note, stop, clock } = keep(async (entries) => void lines.push(...entries));
  for (let at = 0; at < 100; at++) note(refusal);
  for (let at = 0; at < 40; at++) note(entryOf(at));
  clock.advance(60_000);
  note(refusal);
  await stop();
  const of = (action: string) => lines.filter((line) => line.action === action);
  expect([of('admin.call').length, of('request.cancel').length]).toEqual([31, 40]);
  expect(of('more.refused')).toMatchObject([{ times: 70, result: 'refused', actor: { name: null } }]);
});

test('each act whose client left before its answer has a line, as each that was answered', async () => {
  const lines: AuditEntry[] = [];
  const { note, stop } = keep(async (entries) => void lines.push(...entries));
  for (let at = 0; at < 40; at++) note({ ...entryOf(at), result: 'unanswered' });
  await stop();
  expect(lines.map(({ result }) => result)).toEqual(Array.from({ length: 40 }, () => 'unanswered'));
});

test('a flood of strangers hides no refusal of an operator, and none of a config', async () => {
  const lines: AuditEntry[] = [];
  const { note, stop } = keep(async (entries) => void lines.push(...entries));
  const ofStrangers = {
    console: { ...stranger, way: 'console' },
    config: { ...stranger, way: 'config' },
  } as const;
  for (let at = 0; at < 100; at++) note({ ...refusal, actor: at < 50 ? stranger : ofStrangers.console });
  for (let at = 0; at < 40; at++) note({ ...refusal, actor: ada, result: 'key_not_found' });
  note({ ...refusal, actor: { ...ada, name: 'bob' }, result: 'read_only_token' });
  note({ ...refusal, actor: ofStrangers.config, result: 'config_invalid' });
  await stop();
  const own = lines.filter(({ action }) => action === 'admin.call').map(({ actor }) => actor.name);
  expect([...Map.groupBy(own, (name) => name)].map(([name, all]) => [name, all.length])).toEqual([
    [null, 31],
    ['ada', 30],
    ['bob', 1],
  ]);
  expect(
    lines.filter(({ action }) => action === 'more.refused').map(({ actor, times }) => [actor.name, times]),
  ).toEqual([
    [null, 70],
    ['ada', 10],
  ]);
});

test('of the try-outs of an operator in a minute the first 30 have lines, and one more stands for the others', async () => {
  const lines: AuditEntry[] = [];
  const { note, stop } = keep(async (entries) => void lines.push(...entries));
  const tryOut = keyEntry(ada, 'request.try', 'key_1', []);
  for (let at = 0; at < 100; at++) note(at < 30 ? tryOut : { ...tryOut, result: 'client_closed' });
  note({ ...tryOut, result: 'insufficient_balance' });
  note({ ...tryOut, actor: { ...ada, name: 'bob' } });
  await stop();
  expect(lines.map(({ actor, keyId, result, times }) => [actor.name, keyId, result, times])).toEqual([
    ...Array.from({ length: 30 }, () => ['ada', 'key_1', 'done', 1]),
    ['ada', 'key_1', 'insufficient_balance', 1],
    ['bob', 'key_1', 'done', 1],
    ['ada', null, 'done', 70],
  ]);
});

test('lines that wait for a database that is away are bounded, and reported where they are lost', async () => {
  let isAway = true;
  const lines: AuditEntry[] = [];
  const { note, stop, faults } = keep(async (entries) => {
    if (isAway) throw new Error('away');
    lines.push(...entries);
  });
  for (let at = 0; at < 1_005; at++) note(entryOf(at));
  expect(faults).toHaveLength(5);
  await stop();
  expect(faults).toHaveLength(1_005);
  expect(faults.at(-1)).toEqual([
    'a line of the audit could not be stored',
    new Error('away'),
    {
      way: 'admin_api',
      actor: 'ada',
      clientAddress: '192.0.2.7',
      action: 'request.cancel',
      keyId: null,
      subject: 'request 999',
      result: 'done',
      times: 1,
    },
  ]);
  isAway = false;
  note(entryOf(7));
  await stop();
  expect(lines).toHaveLength(1);
});
