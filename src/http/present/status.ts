import type { NamedRunning, Status } from '../../operations/read-status.ts';
import { formatUsd } from '../../shared/money.ts';
import { isoTime } from './iso-time.ts';
import { presentWait } from './wait.ts';

/** The status of a gateway as JSON. */
export type PresentedStatus = ReturnType<typeof presentStatus>;

/** A request in progress in a status. */
export type PresentedStatusRow = PresentedStatus['in_flight']['data'][number];

/** Presents a status with at most so many of its requests. */
export function presentStatus(status: Status, limit: number) {
  return { object: 'status' as const, at: isoTime(status.atMs), ...presentChanging(status, limit) };
}

/** All of a status but its time: what makes it another one. */
export function presentChanging(status: Status, limit: number) {
  const { version, node, state, reason, running, waiting, rows, recent, upstreams, ledger } = status;
  return {
    version,
    node,
    state,
    reason,
    in_flight: {
      running,
      waiting,
      all_nodes: status.hasAllNodes,
      data: rows.slice(0, limit).map(presentRow),
      has_more: running + waiting > Math.min(limit, rows.length),
    },
    recent: {
      seconds: recent.seconds,
      requests: recent.requests,
      per_second: Math.round((recent.requests / recent.seconds) * 100) / 100,
      output_tokens: recent.outputTokens,
      first_text_ms: recent.firstTextMs,
      endings: recent.endings,
    },
    upstreams,
    ledger: {
      open_holds: ledger.openHolds,
      imbalance: ledger.imbalanceNanos === null ? null : formatUsd(ledger.imbalanceNanos),
      settlement_lag_ms: Math.round(ledger.settlementLagMs),
      root:
        ledger.root === null
          ? null
          : { number: ledger.root.number, created_at: isoTime(ledger.root.madeAtMs) },
    },
  };
}

function presentRow(request: NamedRunning) {
  const { requestId, keyId, keyName, protocol, mode, model, upstream, createdAtMs, firstTextMs } = request;
  const { listening, joined, node } = request;
  return {
    request_id: requestId,
    key_id: keyId,
    key_name: keyName,
    protocol,
    mode,
    model,
    upstream,
    created_at: isoTime(createdAtMs),
    ...presentWait(request),
    first_text_ms: firstTextMs === null ? null : Math.round(firstTextMs),
    listening,
    joined,
    node,
  };
}
