import { errorBody, refuse, statusOf } from '../../src/shared/errors.ts';
import type { ErrorCode } from '../../src/shared/errors.ts';

/** When a code is answered, and what its caller does then. A new code does not compile without its row. */
const explanations: Readonly<Record<ErrorCode, readonly [when: string, whatToDo: string]>> = {
  invalid_json: ['the body is no JSON', 'correct the body; the message names the place'],
  invalid_type: ['a field has a value of another type', 'correct the field that `param` names'],
  missing_required_parameter: ['a field that is needed is missing', 'add the field that `param` names'],
  unknown_parameter: [
    'a field is in none of [the tables](compatibility.md)',
    'leave it out; the message names the nearest known field',
  ],
  unsupported_parameter: ['a field asks for what a text-only service does not do', 'leave it out'],
  unsupported_value: [
    'a field has a value that the service does not have',
    'use the value that the message names',
  ],
  invalid_value: [
    "a field has a value that can't be, or the provider refused the request",
    "correct it; `error.upstream` has the provider's words, if they are its",
  ],
  empty_array: ['a list that needs an entry is empty', 'add an entry'],
  integer_below_min_value: ['a number is too small', 'use the smallest that the message names, or more'],
  integer_above_max_value: ['a number is too large', 'use the largest that the message names, or less'],
  decimal_below_min_value: ['a number is too small', 'use the smallest that the message names, or more'],
  decimal_above_max_value: ['a number is too large', 'use the largest that the message names, or less'],
  duplicate_header: ['a header that may come once came more often', 'send it once'],
  tag_not_allowed: [
    "`x-textgate-tag` is none of the key's tags, or the key has none",
    'use a tag that the message names, leave the header out, or have the key changed',
  ],
  content_filter: [
    'the provider refused the text because of what it says',
    'change the text; it is sent to no other provider',
  ],
  context_length_exceeded: ['the text is longer than the model reads', 'shorten it'],
  max_cost_exceeded: [
    'the request may cost more than its own `x-textgate-max-cost`',
    'raise the header, lower the output cap or send less text; the message has the amounts',
  ],
  invalid_api_key: [
    'the key is missing, wrong, revoked or expired',
    'send `Authorization: Bearer <key>` with a valid key',
  ],
  insufficient_balance: ["the key's balance does not pay for the request", 'have the key topped up'],
  balance_held: [
    'the balance would be enough, but running requests hold a part of it',
    'send it again when one of them has ended',
  ],
  budget_exhausted: [
    'the budget of the key, or that of its group, for this period does not pay for the request; `error.budget.refills_at` is the time at which it is full again',
    'send it again at that time, or have the budget raised',
  ],
  budget_held: [
    'the budget would be enough, but running requests hold a part of it',
    'send it again when one of them has ended',
  ],
  group_not_configured: [
    "the key belongs to a group that the gateway's config does not have",
    'ask the operator to add the group, or to take the key out of it',
  ],
  address_not_allowed: [
    'the key may not be used from this address',
    'ask the operator to add the address, which the message names, to the list of the key',
  ],
  model_not_allowed: ['the key may not use this model', 'use another model, or have the key changed'],
  read_only_token: [
    'the read-only token was sent with a request that may change something, or whose answer has secrets (admin API)',
    'send `admin.token` instead',
  ],
  key_not_found: ['no key has this id (admin API)', 'look the id up in the list of keys'],
  webhook_not_found: ['no webhook has this name (admin API)', 'look the name up in the list of webhooks'],
  upstream_not_found: [
    'no upstream of the config has this name (admin API)',
    'look the name up in the list of upstreams',
  ],
  event_not_found: [
    'no delivery of an event with this id is kept (admin API)',
    'look the id up in the list of deliveries',
  ],
  request_not_found: [
    'no request has this id, or it is not running any more',
    'look the id up in the list of requests',
  ],
  model_not_found: ['no model on offer has this name', 'use a name of `GET /v1/models`'],
  unknown_url: ['no route has this path', 'correct the path; the base URL ends with `/v1`'],
  method_not_allowed: ['the route has another method', 'use the method that `allow` names'],
  request_timeout: ['the request took too long to arrive', 'send it again, without a pause in it'],
  key_is_declared: ['the key is declared in the config (admin API)', 'change the config'],
  doctor_is_running: [
    'this upstream is being checked already (admin API)',
    'send it again when that run has ended',
  ],
  response_not_found: [
    'no response of this key with this id is kept: see [Exactly once](exactly-once.md)',
    'send the request with an `Idempotency-Key`, and ask for its response while it runs or soon after',
  ],
  request_in_progress: [
    'the request with this `Idempotency-Key` runs in another process of the gateway',
    'send it again after `retry-after`',
  ],
  replay_unavailable: [
    'the request with this `Idempotency-Key` was answered before, or is too long to be joined: see [Exactly once](exactly-once.md)',
    'look its receipt up; to have it answered anew, send another key',
  ],
  request_too_large: ['the body is larger than `server.maxBody`', 'send less'],
  unsupported_content_type: ['the body is not declared as JSON', 'send `content-type: application/json`'],
  expectation_failed: [
    'the request has an `Expect` other than `100-continue`',
    'send `Expect: 100-continue`, or leave the header out',
  ],
  idempotency_key_reused: [
    'another request was sent with this `Idempotency-Key`',
    'send a new key with each new request',
  ],
  concurrency_limit_exceeded: [
    'the key has as many requests in progress as it may, or as many clients wait for the same answers',
    'send it again after `retry-after`, or when one of them has ended',
  ],
  rate_limit_exceeded: [
    'the key has started as many requests as it may, or used as many tokens',
    'send it again after `retry-after`',
  ],
  upstream_busy: [
    'the provider is used up to its limits, and its queue is full, or the request waited too long in it or would have to; `error.limit.waiting` is how many wait',
    'send it again after `retry-after`, which is the expected wait',
  ],
  upstream_rate_limited: ['the provider limits the gateway', 'send it again after `retry-after`'],
  request_cancelled: ["the operator or the key's holder cancelled the request", 'nothing: it was wanted'],
  server_error: ['a fault of the gateway', 'send it again; report it with its `x-request-id`'],
  upstream_error: ['the provider failed', 'send it again'],
  upstream_unavailable: [
    'the provider could not be reached, or closed the connection without an answer',
    'send it again',
  ],
  upstream_invalid: ["the provider's answer broke its protocol", 'report it to the operator'],
  upstream_truncated: [
    "the provider's answer broke off",
    'send it again if you need the answer: both attempts may cost the operator money',
  ],
  upstream_auth: ["the provider does not accept the gateway's own key", 'report it to the operator'],
  overloaded: ['the provider has no room', 'send it again after `retry-after`'],
  draining: ['this gateway is shutting down', 'send it again; a balancer chooses another one'],
  storage_unavailable: ["the gateway can't record requests now", 'send it again after `retry-after`'],
  upstream_timeout: ['the provider took too long', 'send it again'],
};

export const errorCodes = Object.keys(explanations) as ErrorCode[];

/** The documentation's table of all error codes. `retriedBy` names the client libraries that send a code's request again. */
export function writeErrorTable(retriedBy: ReadonlyMap<ErrorCode, readonly string[]>): string {
  const rows = errorCodes.map((code) => {
    const [when, whatToDo] = explanations[code];
    const { type } = errorBody(refuse(code, ''));
    const retries = retriedBy.get(code)?.join(', ') || '–';
    return `| \`${code}\` | ${statusOf(code)} | \`${type}\` | ${retries} | ${when} | ${whatToDo} |`;
  });
  const head = ['| code | status | type | sent again by | when | what to do |', '|---|---|---|---|---|---|'];
  return [...head, ...rows].join('\n');
}
