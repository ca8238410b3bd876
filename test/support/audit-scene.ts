import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { keyEntry } from '../../src/domain/audit/audit-line.ts';
import type { Actor, AuditEntry, AuditLine } from '../../src/domain/audit/audit-line.ts';
import { withoutKeys } from '../../src/domain/audit/safe-text.ts';
import { noPause } from '../../src/domain/pause.ts';
import { createAuditChain } from '../../src/storage/audit/audit-chain.ts';
import { createAuditTrail } from '../../src/storage/audit/audit-lines.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createStore } from '../../src/storage/store.ts';
import { statementsOver } from './statement-tools.ts';

/** The time at which a scene begins, in milliseconds since 1970. */
export const startMs = 1_800_000_000_000;

/** An operator with a token of her own. */
export const ada: Actor = { way: 'admin_api', name: 'ada', address: '192.0.2.7' };

/** An engine, and how one who may change its database takes the protection of a table away. */
export interface AuditDatabase {
  readonly open: () => Promise<Engine>;
  readonly unprotect: (table: string, triggers: readonly string[]) => readonly string[];
}

const triggersOf = {
  audit_lines: ['audit_line_is_never_changed', 'audit_is_shortened_by_age_alone', 'audit_line_is_counted'],
  audit_chain: ['audit_removals_are_told'],
  ledger_seals: ['ledger_seals_refuses_update'],
};

/** Opens a database with all that keeps its audit. */
export async function openAudit({ open, unprotect }: AuditDatabase) {
  const engine = await open();
  onTestFinished(() => engine.close());
  let nowMs = startMs;
  const now = (): number => nowMs;
  const join = () => createStore(engine, { nextId: () => randomUUID(), now, report: () => {} });
  const trail = createAuditTrail(engine, now);
  return {
    engine,
    trail,
    join,
    store: join(),
    auditChain: createAuditChain(engine, now),
    makeRoot: statementsOver(engine, now).makeRoot,
    pass: (ms: number) => void (nowMs += ms),
    faults: async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const faults of createLedgerAudit(engine).sealFaults(noPause, null)) found.push(...faults);
      return found;
    },
    lines: async (): Promise<readonly AuditLine[]> => (await trail.list({}, 1_000, null)).lines.toReversed(),
    tamper: async (sql: string): Promise<void> => {
      const free = Object.entries(triggersOf).flatMap(([table, triggers]) => unprotect(table, triggers));
      for (const text of [...free, sql]) await engine.run([{ sql: text, values: [] }]);
    },
  };
}

/** A line about nothing but its number. */
export const entryOf = (number: number): AuditEntry =>
  keyEntry(ada, 'request.cancel', null, [], withoutKeys(`request ${number}`));

/** As many of them. */
export const entries = (count: number): readonly AuditEntry[] =>
  Array.from({ length: count }, (_, at) => entryOf(at + 1));
