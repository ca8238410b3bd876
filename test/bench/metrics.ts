import { plainAttempt } from '../support/stored-rows.ts';
import type { Attempt } from '../../src/domain/money/consumption.ts';
import type { ExchangeSummary } from '../../src/domain/exchange-summary.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { noSources } from '../support/metric-sources.ts';
import { readScript } from '../support/script-options.ts';

/** Measures how long `/metrics` takes with 50 models on each of 10 upstreams, with a series for every combination. */

readScript({ name: 'bench metrics', options: {} });

const models = 50;
const upstreams = 10;
const rounds = 50;

const names = Array.from({ length: upstreams }, (_, index) => `upstream-${index}`);
const metrics = createMetrics();
metrics.attach({
  ...noSources,
  upstreamStates: () => Object.fromEntries(names.map((name) => [name, 'closed'] as const)),
  ledgerFigures: () => ({ openHolds: 0, imbalanceNanos: 0, lowBalances: 0, warnedBudgets: 0 }),
});
const usage = {
  inputTokens: 9,
  cachedInputTokens: 1,
  cacheWriteTokens: 0,
  outputTokens: 7,
  reasoningTokens: 0,
  totalTokens: 16,
};

for (const protocol of ['chat', 'responses'] as const)
  for (const mode of ['sync', 'stream'] as const)
    for (const outcome of ['completed', 'incomplete', 'upstream_failed', 'client_closed'] as const)
      for (let model = 0; model < models; model++)
        for (const upstream of names) {
          const attempt: Attempt = { ...plainAttempt, upstream, usage };
          const summary: ExchangeSummary = {
            requestId: 'req_1',
            keyId: 'key_1',
            isTryOut: false,
            clientAddress: null,
            keyName: 'bob',
            tag: null,
            protocol,
            mode,
            model: `model-${model}`,
            requestedModel: `model-${model}`,
            upstream,
            outcome,
            replayOf: null,
            status: 200,
            refusal: null,
            cause: null,
            upstreamError: null,
            usage,
            stripped: [],
            attempts: [{ ...attempt, violations: [] }],
            hedge: null,
            streamOpened: mode === 'stream',
            queuedMs: 1,
            permits: null,
            firstTextMs: 2,
            handoverMs: 1,
            totalMs: 30,
            chargeNanos: 5,
            finishReason: 'stop',
            admittedMs: 1,
            limiterMs: 0,
            slotWaitMs: 0,
            traceId: null,
          };
          metrics.exchangeBegan(protocol);
          if (mode === 'stream') metrics.streamOpened(protocol);
          metrics.exchangeEnded(summary);
        }

const times: number[] = [];
let lines = 0;
for (let round = 0; round < rounds; round++) {
  const startedMs = performance.now();
  const { body } = await metrics.expose();
  times.push(performance.now() - startedMs);
  lines = body.split('\n').length;
}
const sorted = times.toSorted((a, b) => a - b);
process.stdout.write(
  `/metrics with ${models} models on ${upstreams} upstreams: ${lines} lines, median ` +
    `${(sorted[rounds / 2] ?? 0).toFixed(1)} ms, slowest ${(sorted.at(-1) ?? 0).toFixed(1)} ms\n`,
);
