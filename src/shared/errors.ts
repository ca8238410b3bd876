/**
 * The closed list of error codes and what each one means on the wire.
 * Statuses and codes are part of the product surface; `retryable: false` becomes `x-should-retry: false`
 * where an SDK would otherwise retry a status that a retry can't mend, or that already cost money.
 */
const errorTable = {
  invalid_json: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_type: { status: 400, type: 'invalid_request_error', retryable: false },
  missing_required_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  unknown_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_value: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_value: { status: 400, type: 'invalid_request_error', retryable: false },
  empty_array: { status: 400, type: 'invalid_request_error', retryable: false },
  integer_below_min_value: { status: 400, type: 'invalid_request_error', retryable: false },
  integer_above_max_value: { status: 400, type: 'invalid_request_error', retryable: false },
  decimal_below_min_value: { status: 400, type: 'invalid_request_error', retryable: false },
  decimal_above_max_value: { status: 400, type: 'invalid_request_error', retryable: false },
  duplicate_header: { status: 400, type: 'invalid_request_error', retryable: false },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_api_key: { status: 401, type: 'invalid_request_error', retryable: false },
  insufficient_balance: { status: 402, type: 'insufficient_quota', retryable: false },
  balance_held: { status: 402, type: 'insufficient_quota', retryable: true },
  model_not_allowed: { status: 403, type: 'invalid_request_error', retryable: false },
  key_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  request_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  model_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  unknown_url: { status: 404, type: 'invalid_request_error', retryable: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retryable: false },
  request_timeout: { status: 408, type: 'invalid_request_error', retryable: true },
  request_too_large: { status: 413, type: 'invalid_request_error', retryable: false },
  unsupported_content_type: { status: 415, type: 'invalid_request_error', retryable: false },
  concurrency_limit_exceeded: { status: 429, type: 'rate_limit_error', retryable: true },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', retryable: true },
  upstream_rate_limited: { status: 429, type: 'rate_limit_error', retryable: true },
  server_error: { status: 500, type: 'server_error', retryable: true },
  upstream_error: { status: 502, type: 'server_error', retryable: true },
  upstream_unavailable: { status: 502, type: 'server_error', retryable: true },
  upstream_invalid: { status: 502, type: 'server_error', retryable: false },
  upstream_truncated: { status: 502, type: 'server_error', retryable: false },
  upstream_auth: { status: 502, type: 'server_error', retryable: false },
  overloaded: { status: 503, type: 'server_error', retryable: true },
  draining: { status: 503, type: 'server_error', retryable: true },
  storage_unavailable: { status: 503, type: 'server_error', retryable: true },
  upstream_timeout: { status: 504, type: 'server_error', retryable: true },
} as const;

export type ErrorCode = keyof typeof errorTable;

/** Who limited a request, which limit it was, and when a retry makes sense (milliseconds). */
interface LimitDetail {
  readonly source: 'key' | 'upstream';
  readonly kind: 'concurrency' | 'rate';
  readonly limit: number | null;
  readonly inFlight?: number;
  readonly retryAfterMs: number;
}

const refusalBrand = Symbol('refusal');

/**
 * An expected "no": a value that stages return, never an exception.
 * `message` is written for the caller and holds no secret, no prompt and no upstream address.
 */
export interface Refusal {
  /** A symbol, because nothing that was parsed from JSON can carry one. */
  readonly [refusalBrand]: true;
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string | null;
  readonly limit: LimitDetail | null;
  readonly retryAfterMs: number | null;
}

/** Options of `refuse` that most refusals leave out. */
interface RefusalExtras {
  readonly param?: string | null;
  readonly limit?: LimitDetail;
  readonly retryAfterMs?: number;
}

/** Builds a refusal; `extras.limit` also sets the time after which a retry makes sense. */
export function refuse(code: ErrorCode, message: string, extras: RefusalExtras = {}): Refusal {
  return {
    [refusalBrand]: true,
    code,
    message,
    param: extras.param ?? null,
    limit: extras.limit ?? null,
    retryAfterMs: extras.retryAfterMs ?? extras.limit?.retryAfterMs ?? null,
  };
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && refusalBrand in value;
}

export function statusOf(code: ErrorCode): number {
  return errorTable[code].status;
}

export function isRetryable(code: ErrorCode): boolean {
  return errorTable[code].retryable;
}

/** The `error` object of the envelope: `message`, `type`, `param` and `code`, always all four. */
export interface ErrorBody {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: ErrorCode;
  readonly limit?: Record<string, unknown>;
}

/** What looks like one of our keys, its hyphens perhaps encoded as in a path. */
const keys = /sk(?:-|%2d)tg(?:-|%2d)[\w%-]*/gi;

/** A refusal may repeat a path or a name in which somebody pasted a key, and it is shown where keys should not be. */
function withoutKeys(text: string): string {
  return text.replace(keys, 'sk-tg-…');
}

/** What clients of either protocol find under `error`, in an HTTP body or in a stream's failure frame. */
export function errorBody(refusal: Refusal): ErrorBody {
  const body: ErrorBody = {
    message: withoutKeys(refusal.message),
    type: errorTable[refusal.code].type,
    param: refusal.param === null ? null : withoutKeys(refusal.param),
    code: refusal.code,
  };
  if (refusal.limit === null) return body;
  const { source, kind, limit, inFlight, retryAfterMs } = refusal.limit;
  const detail = { source, kind, limit, retry_after_ms: Math.ceil(retryAfterMs) };
  return { ...body, limit: inFlight === undefined ? detail : { ...detail, in_flight: inFlight } };
}
