import { createPause } from '../domain/pause.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LedgerAudit } from '../domain/ports/ledger-audit.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { auditAccounts } from '../operations/verify-ledger.ts';
import { repeat } from './repeat.ts';

/** The pause between two audits of all accounts, in milliseconds: with many of them an audit takes a while. */
const auditMs = 600_000;

/** The pause of an audit between two reads of the database, in milliseconds. */
const auditPauseMs = 20;

/** How many faults of one audit are logged one by one. */
const maxLoggedFaults = 20;

/** Audits of all accounts, one after the other. */
export interface RepeatedAudits {
  /** The sum of all differences between accounts and ledger, in nano-USD; `null` unless the last audit came to its end. */
  readonly imbalanceNanos: number | null;
  /** Resolves when nothing is read any more. */
  stop(): Promise<void>;
}

/** Begins the first audit, and logs what is wrong. `onAudited` is called after each that came to its end. */
export function repeatAudits(
  ledger: LedgerAudit,
  clock: Clock,
  onFault: ReportFault,
  onAudited: (imbalanceNanos: number, faults: number) => void,
): RepeatedAudits {
  const stopping = new AbortController();
  const { signal } = stopping;
  let imbalanceNanos: number | null = null;

  const audit = async (): Promise<void> => {
    let faults = 0;
    const report = (fault: string): void => {
      if (++faults <= maxLoggedFaults) onFault('ledger imbalance', fault);
    };
    try {
      const pause = createPause(clock, auditPauseMs, signal);
      ({ imbalanceNanos } = await auditAccounts(ledger, report, pause));
      onAudited(imbalanceNanos, faults);
    } catch (error) {
      imbalanceNanos = null;
      if (!signal.aborted) onFault('ledger audit failed', error);
    }
    if (faults > maxLoggedFaults) onFault('ledger imbalance', `and ${faults - maxLoggedFaults} faults more`);
  };
  const audited = repeat(audit, { firstMs: 0, delayMs: auditMs }, clock, signal);
  return {
    get imbalanceNanos() {
      return imbalanceNanos;
    },
    async stop() {
      stopping.abort(new Error('the audits are stopping'));
      await audited();
    },
  };
}
