import { setImmediate } from 'node:timers/promises';
import { makeRoot } from '../../src/operations/make-root.ts';
import { createStatements } from '../../src/operations/statements.ts';
import type { Statements } from '../../src/operations/statements.ts';
import { checkStatement } from '../../src/domain/statements/check-statement.ts';
import { readStatement, StatementFormatError } from '../../src/domain/statements/read-statement.ts';
import type { LedgerRoot } from '../../src/domain/statements/root.ts';
import type { SigningKey } from '../../src/shared/signing-key.ts';
import { isRefusal } from '../../src/shared/errors.ts';
import { createAuditChain } from '../../src/storage/audit/audit-chain.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerChain } from '../../src/storage/ledger/ledger-chain.ts';
import { createLedgerRoots } from '../../src/storage/ledger/ledger-roots.ts';
import { createSigningKeys } from '../../src/storage/ledger/signing-keys.ts';

type Period = Partial<Parameters<Statements['make']>[1]>;

/** Statements and roots over an engine, as a gateway makes them. */
export function statementsOver(
  engine: Engine,
  now: () => number,
  givenKey: () => SigningKey | null = () => null,
) {
  const [chain, roots] = [createLedgerChain(engine), createLedgerRoots(engine)];
  const clock = { now, monotonicMs: now };
  const statements = createStatements({
    chain,
    roots,
    keys: createSigningKeys(engine, now),
    givenKey,
    clock,
  });
  return {
    chain,
    roots,
    statements,
    /** The text of a statement; throws for a refusal. */
    state: async (keyId: string, period: Period = {}): Promise<string> => {
      const made = await statements.make(
        { id: keyId, name: `the name of ${keyId}` },
        { fromMs: null, toMs: null, after: null, ...period },
      );
      if (isRefusal(made)) throw new Error(made.message);
      return made;
    },
    makeRoot: (): Promise<LedgerRoot | null> => {
      const onFault = (fault: Error): never => {
        throw fault;
      };
      return makeRoot({
        chain,
        roots,
        audit: createAuditChain(engine, () => clock.now()),
        clock,
        pause: setImmediate,
        onFault,
      });
    },
    /** What is wrong with a text, as its reader finds out with the public keys. */
    faultsOf: async (text: string): Promise<readonly string[]> => {
      return faultsOf(text, (await statements.keys()).keys);
    },
  };
}

/** What is wrong with the text of a statement. */
export function faultsOf(text: string, keys: Parameters<typeof checkStatement>[1]): readonly string[] {
  try {
    return checkStatement(readStatement(text), keys).faults;
  } catch (error) {
    if (!(error instanceof StatementFormatError)) throw error;
    return [error.message];
  }
}
