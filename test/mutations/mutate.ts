import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Controls of the tests themselves: each deliberate fault is put into a copy of the sources, and the tests that are
 * there to find it must fail. A fault that nobody finds, or that can't be put in any more, fails this script.
 * `node test/mutations/mutate.ts`
 */

interface Mutation {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** What must fail: test files, or a script with its arguments. */
  readonly tests: readonly string[];
  readonly script?: readonly string[];
}

const model = 'test/pipeline/money.model.test.ts';

const mutations: readonly Mutation[] = [
  {
    name: 'a settlement that does not look whether the record is open',
    file: 'src/storage/record-statements.ts',
    find: 'WHERE request_id = ? AND outcome IS NULL RETURNING request_id, unbooked`',
    replace: 'WHERE request_id = ? RETURNING request_id, unbooked`',
    tests: [model],
  },
  {
    name: 'balance and ledger in two transactions',
    file: 'src/storage/store.ts',
    find: 'const [settled = []] = await engine.run(settleRecord(record, nextId(), now()));',
    replace:
      'const [gate, account, posting] = settleRecord(record, nextId(), now()) as Statement[]; ' +
      'const [settled = []] = await engine.run([gate!, account!]); await engine.run([posting!]);',
    tests: [],
    script: ['test/chaos/kill.ts', '30'],
  },
  {
    name: 'a hold that reads the balance first and takes it later',
    file: 'src/storage/store.ts',
    find: 'return readReservation(await engine.run(openRecord(record)));',
    replace:
      'const [account] = await rows(selectAccounts([record.keyId])); const balance = Number(account?.["balance"]); ' +
      'if (balance < record.hold.leastNanos) return { granted: false, balanceNanos: balance, heldNanos: 0 }; ' +
      'return readReservation(await engine.run(openRecord({ ...record, hold: { ...record.hold, leastNanos: -1e15 } })));',
    tests: ['test/e2e/money.test.ts'],
  },
  {
    name: 'a hold that is kept when the client leaves',
    file: 'src/pipeline/settle.ts',
    find: "stage.stage === 'recorded' ? await closeRecord",
    replace: "stage.stage === 'recorded' && summary.outcome !== 'client_closed' ? await closeRecord",
    tests: [model],
  },
  {
    name: 'prices with a floating point',
    file: 'src/domain/pricing.ts',
    find: 'const cost = (sum + perTokens - 1n) / perTokens +',
    replace: 'const cost = BigInt(Math.round(Number(sum) / 1e6)) +',
    tests: ['test/domain/pricing.test.ts'],
  },
  {
    name: 'our own count cut at the hold in soft mode, too',
    file: 'src/pipeline/charge.ts',
    find: "basis === 'counted' && ports.balanceMode === 'strict' && holdNanos",
    replace: "basis === 'counted' && holdNanos",
    tests: [model],
  },
  {
    name: 'usage that is believed though it came before the last of the text',
    file: 'src/protocol/upstream/answer.ts',
    find: 'isStale: this.#saidIn > this.#reportedIn,',
    replace: 'isStale: false,',
    tests: [model],
  },
  {
    name: 'usage that is believed though a count became smaller',
    file: 'src/protocol/upstream/reported-usage.ts',
    find: 'if (outputTokens < this.#mostOutput ||',
    replace: 'if (false ||',
    tests: [model],
  },
  {
    name: 'thoughts that are not counted',
    file: 'src/protocol/upstream/answer.ts',
    find: 'this.thoughts.add(text);',
    replace: '',
    tests: [model],
  },
  {
    name: 'a charge that lets the sum of an account leave what is exact',
    file: 'src/storage/record-statements.ts',
    find: 'WHEN spent > ${maxNanos} - ? THEN ${maxNanos} - spent',
    replace: 'WHEN spent < 0 - ? THEN 0',
    tests: ['test/operations/verify-ledger.test.ts'],
  },
  {
    name: 'a second call after text has gone out',
    file: 'src/pipeline/run-request.ts',
    find: "return answer.kind === 'opened' ? await rewrite(answer, work.received, exchange, ports) : answer;",
    replace:
      "if (answer.kind !== 'opened') return answer; const first = await rewrite(answer, work.received, exchange, ports); " +
      "if (first.kind === 'failed') await tryRoutes(toSend, work, dispatched, exchange, ports); return first;",
    tests: ['test/pipeline/failover.property.test.ts'],
  },
  {
    name: 'another attempt for an answer that fails in the read of its first words',
    file: 'src/pipeline/attempt.ts',
    find: 'const isEmpty = first.deltas.length === 0 || reader.isWhole;',
    replace: 'const isEmpty = reader.isWhole || first.ending !== null;',
    tests: ['test/pipeline/failover.property.test.ts'],
  },
  {
    name: 'an attempt from before a circuit opened that closes it',
    file: 'src/domain/circuit.ts',
    find: 'this.#openedMs !== null && startedMs >= this.#openedMs) this.#close();',
    replace: 'this.#openedMs !== null) this.#close();',
    tests: ['test/domain/upstream-health.test.ts'],
  },
  {
    name: 'a part that goes out before its request is recorded',
    file: 'src/pipeline/run-request.ts',
    find: 'await Promise.allSettled([calling, recording]);',
    replace: 'await calling;',
    tests: ['test/pipeline'],
  },
  {
    name: 'bytes after the end of an answer',
    file: 'src/pipeline/delivery.ts',
    find: "if (before.phase === 'ended') throw new Error('delivery law broken: a second end');",
    replace: '',
    tests: ['test/pipeline/delivery.test.ts'],
  },
  {
    name: 'a slot that is given back late',
    file: 'src/pipeline/settle.ts',
    find: 'await releaseSlot(stage.key.id, exchange, ports);',
    replace:
      '{ const { id } = stage.key; setTimeout(() => void ports.limiter.release(id, exchange.requestId), 100); }',
    tests: ['test/e2e/limits.test.ts', 'test/pipeline/injected-faults.test.ts'],
  },
];

const root = join(import.meta.dirname, '..', '..');
const timeoutMs = 180_000;
const survivors = mutations.filter((mutation) => !isFound(mutation));
process.exit(survivors.length === 0 ? 0 : 1);

/** Whether the tests fail with the fault in. */
function isFound({ name, file, find, replace, tests, script }: Mutation): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-mutation-'));
  try {
    for (const part of ['src', 'test', 'package.json', 'tsconfig.json', 'README.md', 'docs'])
      cpSync(join(root, part), join(folder, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const source = readFileSync(join(folder, file), 'utf8');
    if (!source.includes(find)) return report(name, 'can not be put in any more');
    writeFileSync(
      join(folder, file),
      source.replace(find, () => replace),
    );
    const command = script ?? [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tests];
    const { status } = spawnSync(process.execPath, command, {
      cwd: folder,
      env: { ...process.env, MONEY_RUNS: '1000' },
      timeout: timeoutMs,
      stdio: 'ignore',
    });
    return status === 0 ? report(name, 'NOT FOUND') : !report(name, 'found');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function report(name: string, result: string): false {
  process.stdout.write(`${name}: ${result}\n`);
  return false;
}
