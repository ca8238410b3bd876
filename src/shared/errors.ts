/**
 * The closed list of error codes, each with its HTTP status and type.
 * Statuses and codes are part of the product surface; `retryable: false` becomes `x-should-retry: false`
 * where an SDK would otherwise retry a request that must fail again or that already cost money.
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
  tag_not_allowed: { status: 400, type: 'invalid_request_error', retryable: false },
  content_filter: { status: 400, type: 'invalid_request_error', retryable: false },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retryable: false },
  max_cost_exceeded: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_api_key: { status: 401, type: 'invalid_request_error', retryable: false },
  insufficient_balance: { status: 402, type: 'insufficient_quota', retryable: false },
  balance_held: { status: 402, type: 'insufficient_quota', retryable: true },
  budget_exhausted: { status: 402, type: 'insufficient_quota', retryable: false },
  budget_held: { status: 402, type: 'insufficient_quota', retryable: true },
  group_not_configured: { status: 403, type: 'invalid_request_error', retryable: false },
  address_not_allowed: { status: 403, type: 'invalid_request_error', retryable: false },
  model_not_allowed: { status: 403, type: 'invalid_request_error', retryable: false },
  read_only_token: { status: 403, type: 'invalid_request_error', retryable: false },
  key_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  request_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  response_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  webhook_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  upstream_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  event_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  model_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  unknown_url: { status: 404, type: 'invalid_request_error', retryable: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retryable: false },
  request_timeout: { status: 408, type: 'invalid_request_error', retryable: true },
  key_is_declared: { status: 409, type: 'invalid_request_error', retryable: false },
  doctor_is_running: { status: 409, type: 'invalid_request_error', retryable: true },
  request_in_progress: { status: 409, type: 'invalid_request_error', retryable: true },
  replay_unavailable: { status: 409, type: 'invalid_request_error', retryable: false },
  request_too_large: { status: 413, type: 'invalid_request_error', retryable: false },
  unsupported_content_type: { status: 415, type: 'invalid_request_error', retryable: false },
  expectation_failed: { status: 417, type: 'invalid_request_error', retryable: false },
  idempotency_key_reused: { status: 422, type: 'invalid_request_error', retryable: false },
  concurrency_limit_exceeded: { status: 429, type: 'rate_limit_error', retryable: true },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error', retryable: true },
  upstream_busy: { status: 429, type: 'rate_limit_error', retryable: true },
  upstream_rate_limited: { status: 429, type: 'rate_limit_error', retryable: true },
  request_cancelled: { status: 499, type: 'invalid_request_error', retryable: false },
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

/** All error codes. */
export const errorCodes = Object.keys(errorTable) as readonly ErrorCode[];

/** The limit that a request exceeded: whose it is, its kind and value, and when a retry makes sense. */
interface LimitDetail {
  readonly source: 'key' | 'group' | 'upstream';
  readonly kind: 'concurrency' | 'rate' | 'tokens' | 'queue';
  readonly limit: number | null;
  readonly inFlight?: number;
  /** How many requests wait in the queue. */
  readonly waiting?: number;
  readonly retryAfterMs: number;
}

/** The budget that a request has no room in, with its amount in USD and the time at which it is full again, in ISO 8601. */
interface BudgetDetail {
  readonly source: 'key' | 'group';
  readonly amount: string;
  readonly refillsAt: string;
}

/** What an upstream said of an error, sanitised: without keys, addresses, ids and text of the request. */
export interface UpstreamError {
  /** The HTTP status, or the one that an error inside an answer names; `null` without either. */
  readonly status: number | null;
  /** The upstream's own name for the error. */
  readonly code: string | null;
  /** At most 400 characters. */
  readonly message: string | null;
}

const refusalBrand = Symbol('refusal');

/**
 * An expected failure: a value that stages return, never an exception.
 * `message` is written for the client and contains no secret, no prompt and no upstream address.
 */
export interface Refusal {
  /** A symbol, so that no value parsed from JSON can pass for a refusal. */
  readonly [refusalBrand]: true;
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string | null;
  readonly limit: LimitDetail | null;
  readonly budget: BudgetDetail | null;
  readonly retryAfterMs: number | null;
  /** The upstream's own words, if it found the request at fault. */
  readonly upstream: UpstreamError | null;
  /** What the operator reads of it in the log; clients never get it. */
  readonly cause: string | null;
}

/** Optional parts of a refusal. */
type RefusalExtras = Partial<Omit<Refusal, typeof refusalBrand | 'code' | 'message'>>;

/** Builds a refusal. `extras.limit` also sets `retryAfterMs`. */
export function refuse(code: ErrorCode, message: string, extras: RefusalExtras = {}): Refusal {
  return {
    [refusalBrand]: true,
    code,
    message,
    param: extras.param ?? null,
    limit: extras.limit ?? null,
    budget: extras.budget ?? null,
    retryAfterMs: extras.retryAfterMs ?? extras.limit?.retryAfterMs ?? null,
    upstream: extras.upstream ?? null,
    cause: extras.cause ?? null,
  };
}

/** Whether a value is a refusal, made by `refuse`. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && refusalBrand in value;
}

/** The HTTP status of an error code. */
export function statusOf(code: ErrorCode): number {
  return errorTable[code].status;
}

/** Whether the same request may succeed when it is sent again. */
export function isRetryable(code: ErrorCode): boolean {
  return errorTable[code].retryable;
}

/** The `error` object: `message`, `type`, `param` and `code` are always present. */
export interface ErrorBody {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: ErrorCode;
  readonly limit?: Record<string, unknown>;
  readonly budget?: Record<string, unknown>;
  readonly upstream?: UpstreamError;
}

/**
 * Text in the form of an API key: of ours, or of an older gateway that is declared here, as far as those begin with `sk-`.
 * Hyphens may be percent-encoded, as in a path.
 */
const keys = /sk(?:-|%2d)(tg)(?:-|%2d)[\w%-]*|(?<![a-z0-9])sk(?:-|%2d)[\w%-]{16,}/gi;

/** Masks keys: a refusal may quote a path or a name that contains one by mistake, and clients log and display refusals. */
function withoutKeys(text: string): string {
  return text.replace(keys, (_key, ours?: string) => (ours === undefined ? 'sk-…' : 'sk-tg-…'));
}

/** The `error` object that clients of either protocol get, in an HTTP body or in a stream's failure frame. */
export function errorBody(refusal: Refusal): ErrorBody {
  const body: ErrorBody = {
    message: withoutKeys(refusal.message),
    type: errorTable[refusal.code].type,
    param: refusal.param === null ? null : withoutKeys(refusal.param),
    code: refusal.code,
    ...(refusal.upstream === null ? {} : { upstream: refusal.upstream }),
    ...(refusal.budget === null ? {} : { budget: presentBudget(refusal.budget) }),
  };
  if (refusal.limit === null) return body;
  const { source, kind, limit, inFlight, waiting, retryAfterMs } = refusal.limit;
  const detail = { source, kind, limit, retry_after_ms: Math.ceil(retryAfterMs) };
  const inUse = inFlight === undefined ? {} : { in_flight: inFlight };
  return { ...body, limit: { ...detail, ...inUse, ...(waiting === undefined ? {} : { waiting }) } };
}

function presentBudget({ source, amount, refillsAt }: BudgetDetail): Record<string, unknown> {
  return { source, amount, refills_at: refillsAt };
}

/** A refusal as the methods of a `Gateway` throw it, with the fields of the error that HTTP would answer with. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  /** The HTTP status of the code. */
  readonly status: number;
  /** The field that was wrong; `null` if none was. */
  readonly param: string | null;

  constructor({ code, message, param }: Refusal, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = statusOf(code);
    this.param = param;
  }
}
