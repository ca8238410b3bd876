import type { Mutation } from './mutation.ts';

const resumed = ['test/e2e/resumed-streams.test.ts'];
const retried = ['test/e2e/joined-retries.test.ts'];
const nodes = ['test/e2e/claim-nodes.long.test.ts'];

/** Faults of requests that are sent again: joined, replayed, gone on with and retried. */
export const claimFaults: readonly Mutation[] = [
  {
    name: 'a request whose claim was freed that is charged all the same',
    file: 'src/storage/records/settle-record.ts',
    find: 'const ifClaimed = hasClaim ?',
    replace: 'const ifClaimed = hasClaim && name.length > 99 ?',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a claim that is given to a second request',
    file: 'src/storage/claims.ts',
    find: 'WHERE claim_rows.ended_at IS NULL AND (',
    replace: 'WHERE (1 = 1 OR ',
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'a claim that has ended, and is freed with the lease of its owner',
    file: 'src/storage/claims.ts',
    find: "= 'ended_at IS NULL AND owner IS NOT NULL';",
    replace: "= 'owner IS NOT NULL';",
    tests: ['test/conformance/sqlite.test.ts'],
  },
  {
    name: 'another request under the same name that gets its answer',
    file: 'src/pipeline/claims/claim-request.ts',
    find: 'if (run.request !== requestDigest(exchange, body))',
    replace: 'if (run.request === null)',
    tests: ['test/e2e/claims.test.ts'],
  },
  {
    name: 'a claimed request that its client stops by leaving',
    file: 'src/pipeline/delivery/watch-disconnect.ts',
    find: "if (exchange.claim?.phase === 'running') return;",
    replace: '',
    tests: ['test/e2e/claims.test.ts'],
  },
  {
    name: 'an answer under a claim whose end goes out although its charge is not booked',
    file: 'src/background/retry-settlements.ts',
    find: 'const made = record.claim === undefined ? null : queue.made(record.requestId);',
    replace: 'const made = record.claim === undefined || true ? null : queue.made(record.requestId);',
    tests: ['test/background/retry-settlements.test.ts'],
  },
  {
    name: 'a stream that goes on with the rest of another run',
    file: 'src/pipeline/claims/event-place.ts',
    find: 'if (place.run !== null && `${place.run}-` !== idPrefix) return eventOfOtherRun();',
    replace: '',
    tests: resumed,
  },
  {
    name: 'a request that runs anew behind an event that its client has of another run',
    file: 'src/pipeline/claims/claim-request.ts',
    find: 'const elsewhere = found ?? (joiner.place === null ? null : nothingToGoOnWith());',
    replace: 'const elsewhere = found;',
    tests: resumed,
  },
  {
    name: 'an event that is sent although the client has it',
    file: 'src/protocol/answer-writer.ts',
    find: "if (number <= after) return '';",
    replace: "if (number < after) return '';",
    tests: resumed,
  },
  {
    name: 'a response that another key gets',
    file: 'src/pipeline/claims/running-claims.ts',
    find: 'return run?.keyId === keyId ? run : undefined;',
    replace: 'return run;',
    tests: resumed,
  },
  {
    name: 'a cancelled response that is told as one in progress',
    file: 'src/pipeline/claims/response-state.ts',
    find: '  await run.over;\n',
    replace: '',
    tests: resumed,
  },
  {
    name: 'a retry that joins a request whose client is still there',
    file: 'src/pipeline/claims/claimed-run.ts',
    find: 'return this.mayBeLeft && this.answer.hasNoClient && this.joins === 0;',
    replace: 'return this.mayBeLeft;',
    tests: retried,
  },
  {
    name: 'an answer that was received and is given to a later retry',
    file: 'src/pipeline/claims/claimed-run.ts',
    find: ' && isWhole && !wasDelivered;',
    replace: ' && isWhole;',
    tests: retried,
  },
  {
    name: 'a retry that does not wait for the end of its old connection',
    file: 'src/pipeline/claims/unnamed-runs.ts',
    find: 'if (joined !== null || open.length === 0 || leftMs <= 0) return joined;',
    replace: 'return joined;',
    tests: retried,
  },
  {
    name: 'a process that goes on with claims whose lease it can not renew',
    file: 'src/background/keep-lease.ts',
    find: "clock.schedule(Math.max(0, leftMs), () => tell('may_end'))",
    replace: 'null',
    tests: ['test/background/keep-lease.test.ts'],
  },
  {
    name: 'a listener of nodes that asks for no token',
    file: 'src/http/listen/peer-listener.ts',
    find: "if (!isSame(request.headers.authorization ?? '', `Bearer ${options.token}`)) return refuse(401);",
    replace: '',
    tests: nodes,
  },
  {
    name: 'a joined stream that passes for complete although its process said no end',
    file: 'src/pipeline/claims/join-elsewhere.ts',
    find: 'return delivery.wasOpened ? lost : refused(processSilent());',
    replace: "return { kind: 'joined', isReplay };",
    tests: nodes,
  },
];
