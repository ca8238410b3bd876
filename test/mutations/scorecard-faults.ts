import type { Mutation } from './mutation.ts';

/** The section of the scorecard that must find a fault, and how much of it is run. */
const section = (name: string, scale: number): Pick<Mutation, 'tests' | 'script'> => ({
  tests: [],
  script: ['test/scorecard/run.ts', '--seed', '1', '--scale', String(scale), name],
});

/** Faults that sections of the scorecard must find: each shows that its section can fail. */
export const scorecardFaults: readonly Mutation[] = [
  {
    name: 'scorecard raw: a transfer encoding beside a length that is taken',
    file: 'src/http/heads/strict-head.ts',
    find: "if (!isAlone || transferEncoding.toLowerCase() !== 'chunked') return wrongFraming;",
    replace: 'void isAlone;',
    ...section('raw', 1),
  },
  {
    name: 'scorecard mutated: a check of heads that throws',
    file: 'src/http/heads/strict-head.ts',
    find: 'return duplicated(field);',
    replace: "throw new Error('duplicated');",
    ...section('mutated', 0.1),
  },
  {
    name: 'scorecard bodies: bytes that are no UTF-8, replaced',
    file: 'src/protocol/parse-body.ts',
    find: "new TextDecoder('utf-8', { fatal: true });",
    replace: "new TextDecoder('utf-8');",
    ...section('bodies', 0.3),
  },
  {
    name: 'scorecard guessing: a revoked key that is valid',
    file: 'src/domain/keys/api-key.ts',
    find: 'return revokedAt === null && (',
    replace: 'void revokedAt; return (',
    ...section('guessing', 0.015),
  },
  {
    name: 'scorecard reuse: a stale connection that is not tried again',
    file: 'src/transport/http-call.ts',
    find: 'if (this.#isReused && this.#connection',
    replace: 'if (this.#isReused && 1 > 2 && this.#connection',
    ...section('reuse', 0.02),
  },
  {
    name: 'scorecard drain: a process that ends without its answers',
    file: 'src/cli/serve/shutdown.ts',
    find: 'void finish(gateway.close());',
    replace: 'void finish(Promise.resolve());',
    ...section('drain', 0.04),
  },
  {
    name: 'scorecard reload: a broken config file that is not counted',
    file: 'src/cli/serve/reload-on-change.ts',
    find: 'reloaded.reloadFailed(forRunningProcess(error, file));',
    replace: 'void forRunningProcess;',
    ...section('reload', 0.005),
  },
  {
    name: 'scorecard slow: a head without a deadline',
    file: 'src/http/server.ts',
    find: 'headersTimeout: head,',
    replace: 'headersTimeout: 0,',
    ...section('slow', 0.05),
  },
  {
    name: 'scorecard descriptors: connections of clients that may use up all descriptors',
    file: 'src/config/connection-limits.ts',
    find: 'Math.max(leastConnections, affordable));',
    replace: 'Math.max(4_096, affordable));',
    ...section('descriptors', 1),
  },
  {
    name: 'scorecard upstreams: an answer without a finish reason that is complete',
    file: 'src/protocol/upstream/answer.ts',
    find: "const isMarked = mark === 'given' && this.#rules.finishReason === 'optional' && this.hasText;",
    replace: 'const isMarked = this.hasText;',
    ...section('upstreams', 1),
  },
  {
    name: 'scorecard resets: a reset that ends the process',
    file: 'src/http/server.ts',
    find: 'return void socket.destroy();',
    replace: 'throw error;',
    ...section('resets', 0.2),
  },
  {
    name: 'scorecard keepalive: connections that are closed before the announced end',
    file: 'src/http/connections/connection.ts',
    find: 'const keepAliveSlackMs = 1_000;',
    replace: 'const keepAliveSlackMs = -10_000;',
    ...section('keepalive', 0.2),
  },
];
