import { z } from 'zod';
import { auditActions, auditWays } from '../../src/domain/audit/audit-line.ts';
import { budgetPeriods } from '../../src/domain/budgets/calendar.ts';
import { removal } from '../../src/http/admin/archive.ts';
import { changedKey, importedKey, newKey, payment, rotation } from '../../src/http/admin/key-inputs.ts';
import { examination } from '../../src/http/admin/upstreams.ts';
import { login } from '../../src/http/console/session-routes.ts';
import { resending } from '../../src/http/admin/webhooks.ts';
import { eventTypes } from '../../src/domain/events.ts';
import { markKinds } from '../../src/domain/history/interval.ts';
import { valueKinds } from '../../src/shared/schema-values.ts';
import type { ValueKind } from '../../src/shared/schema-values.ts';
import { closed, count, flag, nullable, text } from './answer-schemas.ts';
import { schemaRef } from './contract-schemas.ts';
import type { JsonSchema } from './contract-schemas.ts';
import { policyNames } from '../../src/domain/routing/policy-names.ts';

const usd: JsonSchema = { type: 'string', pattern: String.raw`^-?\d+\.\d{2,9}$`, description: 'USD.' };
const moment: JsonSchema = { type: 'string', format: 'date-time' };
const milliseconds = nullable({ type: 'number', minimum: 0 });
const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });

/** How values that are written with a unit look in a body. */
const kinds: Readonly<Partial<Record<ValueKind, JsonSchema>>> = {
  duration: { type: 'string', pattern: String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$`, examples: ['5s'] },
  usd: { type: 'string', pattern: String.raw`^\d{1,16}(\.\d{1,9})?$`, examples: ['5.00'] },
  instant: { type: 'string', pattern: String.raw`^\d{4}-\d{2}-\d{2}(T.+)?$`, examples: ['2030-01-01'] },
};

/** What a body may be, made of the schema that checks it. */
export function inputSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _draft, ...made } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const kind = valueKinds.get(zodSchema as unknown as z.ZodType)?.kind;
      if (kind !== undefined) Object.assign(jsonSchema, kinds[kind]);
    },
  });
  return made;
}

const account = { balance: nullable(usd), held: usd, spent: usd };

/** A budget of a key or a group in its current period. */
const budget = nullable(
  closed({
    amount: usd,
    per: { enum: [...budgetPeriods] },
    time_zone: text,
    warn_at: listOf(text),
    raise: nullable(closed({ amount: usd, until: moment })),
    available: usd,
    held: usd,
    spent: usd,
    warned_at: nullable(text),
    since: moment,
    refills_at: moment,
  }),
);

/** A group with what its keys do and have spent together. */
const group = closed({ name: text, concurrency: nullable(count), budget, in_flight: count });

const key = {
  id: text,
  name: text,
  created_at: moment,
  limits: closed({
    concurrency: count,
    requests_per_minute: count,
    queue_wait_ms: count,
    tokens_per_minute: nullable(count),
    tokens_per_day: nullable(count),
  }),
  models: nullable(listOf(text)),
  allow_from: nullable(listOf(text)),
  tags: listOf(text),
  expires_at: nullable(moment),
  revoked_at: nullable(moment),
  compatibility: closed({
    sampling: { enum: ['strip', 'strict'] },
    unknown_fields: { enum: ['reject', 'ignore'] },
    responses_done: flag,
    usage_cost: flag,
    charge_comment: flag,
  }),
  ...account,
  budget,
  join_retries_ms: nullable(count),
  in_flight: count,
  refused_today: { type: 'object', additionalProperties: count },
};

/** What operators see of a key beside what its holder sees. */
const managedKey = {
  ...key,
  group: nullable(text),
  low_balance: nullable(usd),
  weight: count,
  declared: flag,
};

const usage = nullable(
  closed({
    input_tokens: count,
    cached_input_tokens: count,
    cache_write_tokens: count,
    output_tokens: count,
    reasoning_tokens: count,
    total_tokens: count,
  }),
);

const upstreamError = nullable(
  closed({ status: nullable(count), code: nullable(text), message: nullable(text) }),
);

const attempt = {
  upstream: text,
  model: nullable(text),
  result: text,
  started_ms: { type: 'number', minimum: 0 },
  duration_ms: { type: 'number', minimum: 0 },
  usage,
};

const timings = { queued_ms: milliseconds, first_byte_ms: milliseconds, total_ms: milliseconds };

function record(attempts: JsonSchema, more: Readonly<Record<string, JsonSchema>> = {}) {
  return closed({
    request_id: text,
    key_id: text,
    created_at: moment,
    protocol: text,
    mode: nullable(text),
    model: nullable(text),
    tag: nullable(text),
    group: nullable(text),
    upstream: nullable(text),
    outcome: text,
    status: nullable(count),
    code: nullable(text),
    usage,
    usage_source: nullable(text),
    price: closed({ input: usd, cached_input: usd, cache_write: usd, output: usd, request: usd }),
    hold: usd,
    charge: usd,
    timings: closed(timings),
    attempts: listOf(attempts),
    ...more,
  });
}

/** Groups of usage, and what is summed up; a row has the groups that were asked for. */
const periods = { hour: moment, day: { ...text, format: 'date' }, month: text };
const ownGroups = { ...periods, model: text, outcome: text, tag: nullable(text) };
const allGroups = {
  ...ownGroups,
  key_id: text,
  key_name: nullable(text),
  group: nullable(text),
  upstream: text,
};
const sums = {
  requests: count,
  input_tokens: count,
  cached_input_tokens: count,
  cache_write_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
  charge: usd,
};

/** What a request in progress waits for. */
const wait = {
  waits_for: nullable({ enum: ['slot', 'upstream'] }),
  waits_at: nullable(listOf(text)),
  position: nullable(count),
  expected_wait_ms: nullable(count),
};

/** How many clients get the answer of a claimed request in progress, and which request another one has joined. */
const claimed = {
  listening: nullable(count),
  joined: nullable(text),
};

/** How an upstream is, and those of its models that are not ok. */
const upstreamReport = {
  state: text,
  cause: text,
  models: {
    type: 'object',
    additionalProperties: closed({ state: text, cause: text }, ['cause']),
  } satisfies JsonSchema,
};

/** What a gateway does now. */
const status = closed({
  object: { const: 'status' },
  at: moment,
  version: text,
  node: nullable(text),
  state: { enum: ['ready', 'not ready', 'draining'] },
  reason: nullable(text),
  in_flight: closed({
    running: count,
    waiting: count,
    all_nodes: flag,
    data: listOf(
      closed({
        request_id: text,
        key_id: nullable(text),
        key_name: nullable(text),
        protocol: nullable(text),
        mode: nullable(text),
        model: nullable(text),
        upstream: nullable(text),
        created_at: moment,
        ...wait,
        first_text_ms: nullable(count),
        ...claimed,
        node: nullable(text),
      }),
    ),
    has_more: flag,
  }),
  recent: closed({
    seconds: count,
    requests: count,
    per_second: { type: 'number', minimum: 0 },
    output_tokens: count,
    first_text_ms: closed({ p50: nullable(count), p99: nullable(count) }),
    endings: { type: 'object', additionalProperties: count },
  }),
  upstreams: {
    type: 'object',
    additionalProperties: closed({ ...upstreamReport, running: count, waiting: count }, ['cause', 'models']),
  },
  ledger: closed({
    open_holds: nullable(count),
    imbalance: nullable(usd),
    settlement_lag_ms: count,
    root: nullable(closed({ number: count, created_at: moment })),
  }),
});

const countsByName = { type: 'object', additionalProperties: count } satisfies JsonSchema;

/** The requests that ended in a time, of all or of one group. */
const historyFigures = {
  requests: countsByName,
  refusals: countsByName,
  first_text_ms: closed({ p50: nullable(count), p95: nullable(count), p99: nullable(count) }),
  output_tokens: count,
  charge: usd,
};

/** What all processes did in some time. */
const history = closed({
  object: { const: 'history' },
  from: moment,
  to: moment,
  step_seconds: count,
  by: listOf(text),
  points: listOf(
    closed(
      {
        at: moment,
        processes: count,
        running: count,
        waiting: count,
        event_loop_delay_ms: count,
        memory_bytes: count,
        upstream_states: { type: 'object', additionalProperties: { enum: ['open', 'half_open'] } },
        ...historyFigures,
        groups: listOf(
          closed({ upstream: nullable(text), model: nullable(text), other: flag, ...historyFigures }),
        ),
      },
      ['groups'],
    ),
  ),
  marks: listOf(
    closed({
      at: moment,
      kind: { enum: [...markKinds] },
      node: nullable(text),
      upstream: nullable(text),
      model: nullable(text),
    }),
  ),
  marks_left_out: count,
});

const circuit = closed({
  state: { enum: ['closed', 'open', 'half_open'] },
  only_key: nullable(text),
  open_since: nullable(moment),
  trial_at: nullable(moment),
  on_trial: flag,
  failures_in_a_row: count,
  opens_at_failures: count,
  window: closed({
    seconds: count,
    attempts: count,
    failures: count,
    opens_from_attempts: count,
    opens_at_share: { type: 'number' },
  }),
});

const priceLine = { input: usd, cached_input: usd, cache_write: usd, output: usd, request: usd };
const counts: JsonSchema = { type: 'object', additionalProperties: count };

const modelPrice = closed({ ...priceLine, above: nullable(closed({ input_tokens: count, ...priceLine })) });

/** How limits of an upstream, or of a model there, are used. */
const usedLimits = {
  in_flight: count,
  max_in_flight: nullable(count),
  starts_left: nullable(count),
  tokens_left: nullable(count),
  learned: listOf(closed({ name: text, limit: count, left: count })),
  learned_in_flight: nullable(count),
  paused_ms: count,
  waiting: count,
  expected_wait_ms: count,
};

/** An upstream with what is known of it. */
const listedUpstream = closed({
  name: text,
  dialect: { enum: ['chat', 'responses', 'anthropic', 'gemini'] },
  origin: text,
  state: text,
  cause: nullable(text),
  availability: { enum: ['available', 'failing', 'cooling'] },
  paused_until: nullable(moment),
  circuit,
  probes: nullable(circuit),
  last_ok_at: nullable(moment),
  last_failed_at: nullable(moment),
  running: nullable(count),
  limiter: nullable(
    closed({
      ...usedLimits,
      models: listOf(closed({ model: text, ...usedLimits })),
      pauses: listOf(closed({ model: nullable(text), paused_ms: count })),
    }),
  ),
  routes: nullable(
    closed({
      data: listOf(
        closed({
          model: text,
          upstream_model: text,
          place: count,
          weight: nullable({ type: 'number' }),
          policy: nullable({ enum: policyNames }),
          measured: nullable(
            closed({
              in_flight: count,
              waiting: count,
              first_text_ms: nullable(count),
              first_text_p95_ms: nullable(count),
              failing: flag,
            }),
          ),
          health: nullable(
            closed({
              availability: { enum: ['available', 'failing', 'cooling'] },
              cause: nullable(text),
              paused_until: nullable(moment),
              circuit,
            }),
          ),
          price: modelPrice,
        }),
      ),
      has_more: flag,
    }),
  ),
  passthrough: listOf(text),
  attempts: counts,
  violations: counts,
});

const means = closed({
  characters: nullable(count),
  first_text_ms: nullable(count),
  total_ms: nullable(count),
  cost: nullable(usd),
});

/** The shadow route of a model, with what was found by comparing. */
const shadow = closed({
  model: text,
  upstream: text,
  upstream_model: text,
  share: { type: 'number', minimum: 0, maximum: 1 },
  price: modelPrice,
  budget: closed({ amount: nullable(usd), spent: usd, held: usd, resets_at: moment }),
  running: count,
  max_in_flight: count,
  since: moment,
  requests: counts,
  skipped: counts,
  compared: counts,
  means: closed({ pairs: count, answers: means, shadows: means }),
  last_failure: nullable(
    closed({ at: moment, outcome: text, cause: nullable(text), upstream_error: upstreamError }),
  ),
});

const doctorReport = closed({
  object: { const: 'doctor' },
  upstreams: listOf(
    closed({
      name: text,
      url: text,
      status: { enum: ['ok', 'warning', 'fault'] },
      checks: listOf(
        closed({
          id: text,
          status: { enum: ['ok', 'warning', 'fault', 'skipped'] },
          detail: text,
          advice: nullable(text),
          ms: nullable(count),
        }),
      ),
    }),
  ),
});

function page(name: string): JsonSchema {
  return closed({ object: { const: 'list' }, data: listOf(schemaRef(name)), next: nullable(text) });
}

/** Failures by their causes, and what limits have refused. */
const failures = closed({
  from: moment,
  to: moment,
  is_complete: flag,
  read_from: moment,
  records: count,
  data: listOf(
    closed({
      cause: nullable(text),
      remedy: nullable(text),
      result: nullable(text),
      upstream: text,
      model: text,
      status: nullable(count),
      code: nullable(text),
      words: nullable(text),
      first_at: moment,
      last_at: moment,
      requests: count,
      calls: count,
      keys: count,
      outcomes: { type: 'object', additionalProperties: count },
      request_id: text,
    }),
  ),
  other: closed({ groups: count, requests: count }),
  refusals: nullable(
    closed({
      from: moment,
      to: moment,
      by_limit: listOf(closed({ limit: text, requests: count, keys: count })),
      by_key: listOf(closed({ key_id: text, key_name: nullable(text), limit: text, requests: count })),
    }),
  ),
});

const quantiles = { requests: count, p50: milliseconds, p95: milliseconds, p99: milliseconds };
const distribution = closed({
  ...quantiles,
  buckets: listOf(closed({ up_to_ms: nullable(count), requests: count })),
});

/** How long the calls of upstreams took. */
const latencies = closed({
  from: moment,
  to: moment,
  slots: listOf(closed({ from: moment, is_complete: flag })),
  data: listOf(
    closed({
      upstream: text,
      model: text,
      requests: count,
      first_text_ms: distribution,
      duration_ms: distribution,
      slots: listOf(
        closed({ requests: count, first_text_ms: closed(quantiles), duration_ms: closed(quantiles) }),
      ),
    }),
  ),
  other: closed({ pairs: count, requests: count }),
});

/** The schemas of keys, receipts and records, and of the bodies that change keys. */
export const operatorSchemas: Readonly<Record<string, JsonSchema>> = {
  OwnKey: closed({ ...key, group: nullable(schemaRef('Group')) }),
  Group: group,
  GroupPage: page('Group'),
  Key: closed(managedKey),
  IssuedKey: closed({ ...managedKey, key: { ...text, description: 'Shown only in this answer.' } }),
  KeyPage: page('Key'),
  KeyImport: closed({
    id: {
      ...nullable(text),
      description: 'That of the key with this hash; `null` where a dry run found none.',
    },
    imported: { ...flag, description: 'Whether it was stored by this request.' },
  }),
  Account: closed({ id: text, booked: flag, ...account }),
  NewKey: inputSchema(newKey),
  ImportedKey: inputSchema(importedKey),
  ChangedKey: inputSchema(changedKey),
  Rotation: inputSchema(rotation),
  Payment: inputSchema(payment),
  Receipt: record(closed({ ...attempt, upstream_error: upstreamError }, ['upstream_error'])),
  ReceiptPage: page('Receipt'),
  Record: record(closed({ ...attempt, cause: nullable(text), upstream_error: upstreamError }), {
    timings: closed({ ...timings, settled_ms: milliseconds }),
    cause: nullable(text),
  }),
  RecordPage: page('Record'),
  Failures: failures,
  Latencies: latencies,
  AuditLine: closed({
    number: count,
    created_at: moment,
    way: { enum: [...auditWays] },
    actor: nullable(text),
    address: nullable(text),
    action: { enum: [...auditActions] },
    key_id: nullable(text),
    subject: nullable(text),
    result: text,
    times: count,
    changes: listOf(closed({ field: text, before: nullable(text), after: nullable(text) })),
  }),
  AuditPage: page('AuditLine'),
  OwnUsage: closed({ ...ownGroups, ...sums }, Object.keys(ownGroups)),
  OwnUsagePage: page('OwnUsage'),
  Usage: closed({ ...allGroups, ...sums }, Object.keys(allGroups)),
  UsagePage: page('Usage'),
  RunningRequest: closed({
    request_id: text,
    key_id: text,
    created_at: moment,
    protocol: nullable(text),
    mode: nullable(text),
    model: nullable(text),
    upstream: nullable(text),
    ...wait,
    first_byte_ms: nullable(count),
    ...claimed,
    node: nullable(text),
  }),
  RunningRequestPage: page('RunningRequest'),
  Status: status,
  History: history,
  Upstream: listedUpstream,
  UpstreamPage: page('Upstream'),
  Shadow: shadow,
  ShadowPage: page('Shadow'),
  Examination: inputSchema(examination),
  DoctorReport: doctorReport,
  Cancellation: closed({ request_id: text, cancelled: { const: true } }),
  Webhook: closed({
    name: text,
    origin: text,
    events: listOf({ enum: [...eventTypes] }),
    waiting: count,
    dead: count,
  }),
  WebhookPage: page('Webhook'),
  Delivery: closed({
    event_id: text,
    type: text,
    webhook: text,
    created_at: moment,
    state: { enum: ['waiting', 'delivered', 'dead'] },
    attempts: count,
    next_attempt_at: nullable(moment),
    ended_at: nullable(moment),
    result: nullable(text),
  }),
  DeliveryPage: page('Delivery'),
  WebhookTest: closed({ webhook: text, event_id: text, delivered: flag, result: text }),
  Resending: inputSchema(resending),
  Resent: closed({ id: text, webhooks: listOf(text) }),
  Removal: inputSchema(removal),
  Removed: closed({ removed: count }),
  Folded: closed({ postings: count }),
  Ledger: { type: 'object', description: 'What the ledger’s rows add up to, and every imbalance.' },
  LedgerRoot: closed({
    number: count,
    created_at: moment,
    accounts: count,
    tree: text,
    previous: text,
    hash: text,
  }),
  LedgerRootPage: page('LedgerRoot'),
  StatementKeys: closed({
    object: { const: 'list' },
    data: listOf(
      closed({
        id: text,
        algorithm: { const: 'Ed25519' },
        public_key: { ...text, description: 'In PEM.' },
        created_at: moment,
        active: flag,
      }),
    ),
    root: nullable(closed({ number: count, created_at: moment, hash: text })),
  }),
  Session: closed({
    role: nullable({ enum: ['admin', 'read_only'] }),
    name: nullable(text),
    expires_at: nullable(moment),
  }),
  Login: inputSchema(login),
  Health: closed({ status: { const: 'ok' } }),
  Readiness: {
    type: 'object',
    properties: {
      status: { enum: ['ready', 'not ready'] },
      reason: text,
      upstreams: {
        type: 'object',
        additionalProperties: closed(upstreamReport, ['cause', 'models']),
      },
      database: { type: 'object' },
    },
    required: ['status'],
    description: 'The listener for clients says the `status` alone.',
  },
};
