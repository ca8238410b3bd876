import type { Mutation } from './mutation.ts';

const pages = 'test/domain/statements.test.ts';
const engines = 'test/conformance/statements.test.ts';
const histories = 'test/conformance/histories.test.ts';

/** Faults of statements: what is sealed, what is signed, and what their reader finds. */
export const statementFaults: readonly Mutation[] = [
  {
    name: 'a chain that does not follow from the row before',
    file: 'src/domain/statements/chain.ts',
    find: 'return digest(`${previous}\\n${text}\\n`);',
    replace: 'return digest(`${previous.length}\\n${text}\\n`);',
    tests: [engines],
  },
  {
    name: 'a chain that is not tied to its account',
    file: 'src/domain/statements/chain.ts',
    find: '${asciiText(keyId)} ${number} ${exactUsd(balanceNanos)}',
    replace: '${number} ${exactUsd(balanceNanos)}',
    tests: [pages],
  },
  {
    name: 'a check that does not look at the signature',
    file: 'src/domain/statements/check-statement.ts',
    find: 'return isSigned(signed, signature, found.key)',
    replace: 'return signed !== signature',
    tests: [pages],
  },
  {
    name: 'a check that takes the key by the id that a list gives it',
    file: 'src/domain/statements/check-statement.ts',
    find: 'keys.map(({ pem }) => readPublicKey(pem)).find(',
    replace: 'keys.map(({ id, pem }) => ({ ...readPublicKey(pem), id })).find(',
    tests: [pages],
  },
  {
    name: 'a check that does not add up the balances',
    file: 'src/domain/statements/check-statement.ts',
    find: 'last.balanceNanos + row.deltaNanos !== row.balanceNanos',
    replace: 'last.balanceNanos === null',
    tests: [pages],
  },
  {
    name: 'a check that skips missing rows',
    file: 'src/domain/statements/check-statement.ts',
    find: 'if (number === expected) return null;',
    replace: 'if (number >= expected) return null;',
    tests: [pages],
  },
  {
    name: 'a statement whose path is not that of its account',
    file: 'src/domain/statements/root.ts',
    find: "steps.push({ side: isRight ? 'left' : 'right', hash })",
    replace: "steps.push({ side: 'right', hash })",
    tests: [pages],
  },
  {
    name: 'a root that does not follow from the one before',
    file: 'src/operations/make-root.ts',
    find: 'previous: last?.hash ?? noPrevious',
    replace: 'previous: noPrevious',
    tests: [engines],
  },
  {
    name: 'a fold of rows that are not those that were sealed',
    file: 'src/storage/ledger/ledger-chain.ts',
    find: "if (states[number - state.number - 1]?.hash !== sealed['hash'])",
    replace: "if (sealed['hash'] === null)",
    tests: [engines],
  },
  {
    name: 'a statement that begins in the middle of a time',
    file: 'src/storage/ledger/ledger-chain.ts',
    find: 'AND charge_number = place + step AND created_at + settled_ms < ${atMs})',
    replace: 'AND charge_number = place + step AND created_at + settled_ms <= ${atMs})',
    tests: [engines],
  },
  {
    name: 'a fold that is not sealed',
    file: 'src/storage/retention.ts',
    find: 'insertSeal(keyId, state),',
    replace: '',
    tests: [engines],
  },
  {
    name: 'a chain that begins anew behind a fold',
    file: 'src/storage/ledger/ledger-chain.ts',
    find: 'if (sealed !== undefined && Number(sealed',
    replace: 'if (folded === 0 && sealed !== undefined && Number(sealed',
    tests: [histories],
  },
  {
    name: 'a root with heads that another process has changed',
    file: 'src/storage/ledger/ledger-roots.ts',
    find: 'WHERE id = 1 AND changes = ${headChanges}',
    replace: 'WHERE id = 1 AND changes <= 1000 + ${headChanges}',
    tests: [engines],
  },
];
