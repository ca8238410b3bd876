import type { ExchangeSummary } from '../../src/domain/exchange-summary.ts';

/** The summary of a completed streamed answer, as metrics and the log get it. */
export const summary: ExchangeSummary = {
  requestId: 'req_1',
  keyId: 'key_1',
  protocol: 'chat',
  mode: 'stream',
  model: 'small',
  upstream: 'local',
  outcome: 'completed',
  status: 200,
  refusal: null,
  cause: null,
  usage: null,
  stripped: [],
  attempts: [],
  finishReason: null,
  streamOpened: true,
  admittedMs: 0,
  slotWaitMs: 0,
  queuedMs: 1,
  firstTextMs: 2,
  handoverMs: 1,
  chargeNanos: 0,
  totalMs: 3,
  traceId: null,
};
