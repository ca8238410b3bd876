import type { InFlight } from '../../pipeline/in-flight.ts';
import type { ActiveConfig } from '../active-config.ts';
import { watchLedger } from './ledger-monitor.ts';
import { composeArchiving, removeOld } from './record-remover.ts';
import { composeStatements } from './statement-services.ts';
import type { StorageServices } from './storage-services.ts';

/** What the work reports to. */
type Reports = Parameters<typeof watchLedger>[3] &
  Omit<Parameters<typeof removeOld>[1], 'settings'> &
  Parameters<typeof composeStatements>[2];

/** Begins all work on records and the ledger beside requests: audits, the end of old records, and roots. */
export function startLedgerWork(
  storage: StorageServices,
  inFlight: InFlight,
  active: () => ActiveConfig,
  reports: Reports,
) {
  const monitor = watchLedger(storage, inFlight, () => active().lowBalanceNanos, reports);
  const removing = { ...reports, settings: () => active().retention };
  const remover = removeOld(storage, removing);
  const { statements, rootKeeper } = composeStatements(storage, () => active().statementKey, reports);
  return {
    archiving: composeArchiving(storage, removing),
    statements,
    /** What gauges are read from. */
    figures: {
      ledgerFigures: () => monitor.figures,
      oldestRecordAgeMs: () => remover.oldestRecordAgeMs(),
      ledgerRoot: () => rootKeeper.figures(),
    },
    /** Resolves when nothing is read or written any more. */
    async stop(): Promise<void> {
      await Promise.all([monitor.stop(), remover.stop(), rootKeeper.stop()]);
    },
  };
}
