import type { Mutation } from './mutation.ts';

const model = 'test/pipeline/money.model.test.ts';

/** Faults of money, endings, slots and words of upstreams. */
export const requestFaults: readonly Mutation[] = [
  {
    name: 'a settlement that overtakes another one',
    file: 'src/storage/records/settle-record.ts',
    find: 'WHERE ${isThisRequest} AND settled_ms IS NULL AND',
    replace: 'WHERE ${isThisRequest} AND',
    tests: [model],
  },
  {
    name: 'a settlement that leaves its request open',
    file: 'src/storage/records/settle-record.ts',
    find: '`DELETE FROM open_rows WHERE ${isThisRequest}`,',
    replace: '',
    tests: [model],
  },
  {
    name: 'a settlement without a beginning that charges nothing',
    file: 'src/storage/records/settle-record.ts',
    find: 'FROM accounts LEFT JOIN open_rows AS begun',
    replace: 'FROM accounts JOIN open_rows AS begun',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a hold that is given back twice, at the closing as lost and at the late settlement',
    file: 'src/storage/records/settle-record.ts',
    find: '${returning(openHold)}',
    replace: "${returning('hold')}",
    tests: [model],
  },
  {
    name: 'a start that closes the open records of live owners',
    file: 'src/storage/leases.ts',
    find: "export const hasNoLease = 'NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = owner)';",
    replace: "export const hasNoLease = '1 = 1';",
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a sweep that closes listed records whose owners have a lease again',
    file: 'src/storage/records/record-store.ts',
    find: '(owner = ${owner} OR ${raw(hasNoLease)}) AND',
    replace: '(owner = ${owner} OR 1 = 1) AND',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a lease that is ended by a process that was cut off from the database itself',
    file: 'src/storage/leases.ts',
    find: 'AND EXISTS (SELECT 1 FROM owners WHERE id = ${owner} AND since <= now_ms() - ${raw(leaseMs)})`;',
    replace: 'AND ${owner} IS NOT NULL`;',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a lease that counts as held without interruption although it was over',
    file: 'src/storage/leases.ts',
    find: 'SET since = CASE WHEN renewed_at > clock.ms - ${leaseMs} AND since <= clock.ms THEN since ELSE clock.ms END,',
    replace: 'SET since = since,',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a lease that lasts for as long as the clock of the database was set back',
    file: 'src/storage/leases.ts',
    find: '\n  WHERE renewed_at > now_ms()`;',
    replace: '\n  WHERE 1 = 0`;',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a process that goes on as the owner whose lease was ended',
    file: 'src/storage/leases.ts',
    find: 'const next = hasHeld ? nextId() : owner.id;',
    replace: 'const next = owner.id;',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'balance and ledger in two transactions',
    file: 'src/storage/records/record-store.ts',
    find: 'return (await call(number)) ?? call(await kinds.ask(kind));',
    replace:
      'const { unit, values } = callOf(number); if (unit.name === "open_record") return call(number); ' +
      'const { pickValues, toPlain } = await import("../engine.ts"); let decided: any = null; ' +
      'const run = (sql: string, all: any) => { const plain = toPlain(sql, unit); return engine.run([{ sql: plain.sql, values: pickValues(plain, all) }]); }; ' +
      'for (const sql of unit.decisions) decided ??= (await run(sql, values)).flat().map((row) => Object.values(row))[0]; ' +
      'if (decided) for (const sql of unit.changes) await run(sql, [...values, ...decided]); ' +
      'return decided?.slice(2) ?? null;',
    tests: [],
    script: ['test/chaos/kill.ts', '--kills', '30'],
  },
  {
    name: 'a hold that reads the balance first and takes it later',
    file: 'src/storage/records/record-store.ts',
    find: 'const callOf = (kind: number) => openingOf(record, kind, owner.id);',
    replace:
      'const [[account] = []] = await engine.read([{ sql: "SELECT balance FROM accounts WHERE key_id = ?", values: [record.keyId] }]); const balance = Number(account?.["balance"]); ' +
      'if (balance < record.hold.leastNanos) return { granted: false, balanceNanos: balance, heldNanos: 0 }; ' +
      'const callOf = (kind: number) => openingOf({ ...record, hold: { ...record.hold, leastNanos: -1e15 } }, kind, owner.id);',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a balance in memory that is not forgotten when another unit may change it',
    file: 'src/background/beginnings.ts',
    find: 'this.#handIn();\n    this.#forget();',
    replace: 'this.#handIn();',
    tests: ['test/background/beginnings.test.ts'],
  },
  {
    name: 'a unit that is handed in before the beginnings in memory',
    file: 'src/background/beginnings.ts',
    find: 'this.#handIn();\n    this.#forget();',
    replace: 'this.#forget();',
    tests: ['test/background/beginnings.test.ts'],
  },
  {
    name: 'a beginning in memory that is written behind its settlement',
    file: 'src/background/beginnings.ts',
    find: 'if (unwritten.delete(requestId)) return found;',
    replace: 'if (found !== undefined) return found;',
    tests: ['test/background/beginnings.test.ts'],
  },
  {
    name: 'a settlement that is tried again and is added to the balance in memory twice',
    file: 'src/background/beginnings.ts',
    find: 'if (isRepeated || isDifferent)',
    replace: 'if (isDifferent)',
    tests: ['test/background/beginnings.test.ts'],
  },
  {
    name: 'a settlement that gives a hold back which was never taken',
    file: 'src/storage/records/settle-record.ts',
    find: 'WHEN :unwritten = 0 THEN hold ELSE ${openHold} END',
    replace: 'ELSE hold END',
    tests: ['test/background/beginnings.test.ts'],
  },
  {
    name: 'a hold that is kept when the client disconnects',
    file: 'src/pipeline/money/settle.ts',
    find: 'wasBegun ? await closeOrFree',
    replace: "wasBegun && summary.outcome !== 'client_closed' ? await closeOrFree",
    tests: [model],
  },
  {
    name: 'prices in floating point',
    file: 'src/domain/money/pricing.ts',
    find: 'const cost = (sum + perTokens - 1n) / perTokens +',
    replace: 'const cost = BigInt(Math.round(Number(sum) / 1e6)) +',
    tests: ['test/domain/pricing.test.ts'],
  },
  {
    name: 'our own count capped at the hold in soft mode, too',
    file: 'src/pipeline/money/charge.ts',
    find: "basis === 'counted' && ports.balanceMode === 'strict' && holdNanos",
    replace: "basis === 'counted' && holdNanos",
    tests: [model],
  },
  {
    name: 'usage that is used although it came before the last of the text',
    file: 'src/protocol/upstream/answer.ts',
    find: 'isStale: this.#saidIn > this.#reportedIn,',
    replace: 'isStale: false,',
    tests: [model],
  },
  {
    name: 'usage that is used although a count became smaller',
    file: 'src/protocol/upstream/reported-usage.ts',
    find: 'if (outputTokens < this.#mostOutput ||',
    replace: 'if (false ||',
    tests: [''],
  },
  {
    name: 'thoughts that are not counted',
    file: 'src/protocol/upstream/answer.ts',
    find: 'this.thoughts.add(text);',
    replace: '',
    tests: [model],
  },
  {
    name: 'a charge that takes the sum of an account beyond exact integers',
    file: 'src/storage/records/settle-record.ts',
    find: 'WHEN spent > ${maxNanos} - :charge THEN ${maxNanos} - spent',
    replace: 'WHEN spent < 0 - :charge THEN 0',
    tests: ['test/operations/verify-ledger.test.ts'],
  },
  {
    name: 'a second call after text has gone out',
    file: 'src/pipeline/run-request.ts',
    find: 'return await rewrite(answer, work.received, exchange, ports, freeWhenOver);',
    replace:
      'const first = await rewrite(answer, work.received, exchange, ports, freeWhenOver); ' +
      "if (first.kind === 'failed') await tryRoutes(toSend, work, dispatched, exchange, ports); return first;",
    tests: ['test/pipeline/failover.property.test.ts'],
  },
  {
    name: 'another attempt for an answer that fails in the read of its first text',
    file: 'src/pipeline/attempts/first-part.ts',
    find: 'const isEmpty = first.deltas.length === 0 || reader.isWhole;',
    replace: 'const isEmpty = reader.isWhole || first.ending !== null;',
    tests: ['test/pipeline/failover.property.test.ts'],
  },
  {
    name: 'an attempt from before a circuit opened that closes it',
    file: 'src/domain/upstreams/circuit.ts',
    find: 'this.#openedMs !== null && startedMs >= this.#openedMs) this.#close();',
    replace: 'this.#openedMs !== null) this.#close();',
    tests: ['test/domain/upstream-health.test.ts'],
  },
  {
    name: 'a settlement that does not wait until its record is begun',
    file: 'src/pipeline/run-request.ts',
    find: 'await Promise.allSettled([calling, recording]);',
    replace: 'await calling;',
    tests: ['test/pipeline/port-faults.test.ts'],
  },
  {
    name: 'bytes after the end of an answer',
    file: 'src/pipeline/delivery/delivery.ts',
    find: "if (before.phase === 'ended') throw new Error('delivery law broken: a second end');",
    replace: '',
    tests: ['test/pipeline/delivery.test.ts'],
  },
  {
    name: 'a slot that is given back late',
    file: 'src/pipeline/money/settle.ts',
    find: '  await freeSlots(exchange, ports);\n  const { claim',
    replace: '  setTimeout(() => void freeSlots(exchange, ports), 100);\n  const { claim',
    tests: ['test/e2e/limits.test.ts', 'test/pipeline/injected-faults.test.ts'],
  },
  {
    name: 'an upstream’s error that quotes the request',
    file: 'src/protocol/upstream/words/sanitise.ts',
    find: '...findPrompt(layer.text, prompt),',
    replace: '',
    tests: ['test/protocol/upstream/words/leaks.property.test.ts', 'test/e2e/canaries.test.ts'],
  },
  {
    name: 'an upstream’s error that shows secrets by their shape',
    file: 'src/protocol/upstream/words/sanitise.ts',
    find: '...findSecrets(layer.text, shownNames),',
    replace: '',
    tests: ['test/protocol/upstream/words/leaks.property.test.ts', 'test/e2e/canaries.test.ts'],
  },
  {
    name: 'a refused text that goes to the next provider',
    file: 'src/domain/upstreams/failure.ts',
    find: "  mayGoElsewhere: false,\n  health: 'success',",
    replace: "  mayGoElsewhere: true,\n  health: 'success',",
    tests: ['test/e2e/blocked-texts.test.ts'],
  },
  {
    name: 'a finish reason stop that hides an earlier length',
    file: 'src/protocol/upstream/finish-reasons.ts',
    find: 'if (missing[reason.unified] >= missing[before]) this.reason = reason;',
    replace: 'this.reason = reason;',
    tests: ['test/protocol/upstream/read-answer.test.ts'],
  },
  {
    name: 'a finish reason on every frame that proves the end without a marker',
    file: 'src/protocol/upstream/finish-reasons.ts',
    find: "    if (mark === 'missing' && isOnEvery) return false;\n",
    replace: '',
    tests: ['test/protocol/upstream/chat.test.ts'],
  },
  {
    name: 'a closed part whose text is said again',
    file: 'src/protocol/upstream/said-text.ts',
    find: "    if (!isBegun && (isNarrower || by !== 'text') && this.#has(copy)) return;\n",
    replace: '',
    tests: ['test/protocol/upstream/said-parts.test.ts'],
  },
  {
    name: 'a copy of a part with more text at its beginning that fails nothing',
    file: 'src/protocol/upstream/said-text.ts',
    find: 'this.sayRest(copy, isWhole ? 0 : start, answer);',
    replace: 'if (isBegun) this.sayRest(copy, isWhole ? 0 : start, answer);',
    tests: ['test/protocol/upstream/said-parts.test.ts'],
  },
];
