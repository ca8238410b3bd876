import { noteActs } from '../../background/note-acts.ts';
import { noteConfigs } from '../../background/note-configs.ts';
import { oldBefore } from '../../background/remove-old-records.ts';
import type { TaskPorts } from '../../background/repeat.ts';
import type { Pause } from '../../domain/pause.ts';
import type { AuditArchive } from '../../domain/ports/audit.ts';
import { ChainError } from '../../domain/ports/ledger-chain.ts';
import { createAuditChain } from '../../storage/audit/audit-chain.ts';
import { createAuditTrail } from '../../storage/audit/audit-lines.ts';
import type { Engine } from '../../storage/engine.ts';

/** The audit of what operators do. */
export function composeAudit(
  engine: Engine,
  basics: TaskPorts,
  retention: () => { readonly keepMs: number; readonly archive: AuditArchive | null },
) {
  const trail = createAuditTrail(engine, () => basics.clock.now());
  const [acts, configs] = [noteActs(trail, basics), noteConfigs(trail, basics)];
  const chain = createAuditChain(engine, () => basics.clock.now());
  return {
    trail,
    chain,
    /** Removes lines that are older than the config says. Those that don't fit the chain stay, and are reported. */
    async removeOld(this: void, pause: Pause): Promise<void> {
      const { keepMs, archive } = retention();
      try {
        await chain.removeBefore(oldBefore(basics.clock.now(), keepMs), archive, pause);
      } catch (error) {
        if (!(error instanceof ChainError)) throw error;
        basics.onFault('old lines of the audit are kept', error);
      }
    },
    /** Takes lines about what changes no key. */
    noteAct: acts.note,
    /** Takes the settings of the config in force. */
    noteConfig: configs.note,
    /** Resolves when nothing is written any more. */
    stop: () => Promise.all([acts.stop(), configs.stop()]),
  };
}
