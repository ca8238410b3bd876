import { keepRoots } from '../../background/keep-roots.ts';
import type { RootKeeper } from '../../background/keep-roots.ts';
import type { Config } from '../../config/schema/schema.ts';
import { readStatementKey } from '../../config/statement-key.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { SigningKey } from '../../shared/signing-key.ts';
import { createStatements } from '../../operations/statements.ts';
import type { Statements } from '../../operations/statements.ts';
import { createLedgerChain } from '../../storage/ledger/ledger-chain.ts';
import { createLedgerRoots } from '../../storage/ledger/ledger-roots.ts';
import { createSigningKeys } from '../../storage/ledger/signing-keys.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import type { StorageServices } from './storage-services.ts';

/** The key that a config gives for statements; `null` without one. */
export function statementKeyOf({ statements: { key } }: Pick<Config, 'statements'>): SigningKey | null {
  return key === undefined ? null : readStatementKey(key);
}

/** Statements, and the roots in which their accounts are. */
interface StatementServices {
  readonly statements: Statements;
  readonly rootKeeper: RootKeeper;
}

/** Composes statements; of processes that share a database, one makes the roots for all. */
export function composeStatements(
  { engine, recovered, shared }: StorageServices,
  givenKey: () => SigningKey | null,
  { clock, log }: { readonly clock: Clock; readonly log: Pick<Log, 'fault' | 'info'> },
): StatementServices {
  const [chain, roots] = [createLedgerChain(engine), createLedgerRoots(engine)];
  const keys = createSigningKeys(engine, () => clock.now());
  return {
    statements: createStatements({ chain, roots, keys, givenKey, clock }),
    rootKeeper: keepRoots({
      chain,
      roots,
      ready: recovered,
      clock,
      duty: shared?.rootDuty ?? null,
      onRoot: ({ number, accounts, hash }) => log.info('ledger root', { root: number, accounts, hash }),
      onFault: log.fault,
    }),
  };
}
