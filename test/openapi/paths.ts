import { archiveQuery } from '../../src/http/admin/archive.ts';
import { historyQuery } from '../../src/http/admin/history.ts';
import { statusQuery } from '../../src/http/admin/status.ts';
import { failureQuery } from '../../src/http/admin/failures.ts';
import { latencyQuery } from '../../src/http/admin/latency.ts';
import { auditQuery } from '../../src/http/admin/audit.ts';
import { recordQuery } from '../../src/http/admin/records.ts';
import { deliveryQuery } from '../../src/http/admin/webhooks.ts';
import { keyQuery } from '../../src/http/admin/key-inputs.ts';
import { rootQuery } from '../../src/http/admin/statements.ts';
import { tryOutQuery } from '../../src/http/admin/try-out.ts';
import { pageQuery } from '../../src/http/checked-input.ts';
import { ownUsageQuery, usageQuery } from '../../src/http/usage.ts';
import { responseQuery } from '../../src/http/response-routes.ts';
import { statementQuery } from '../../src/http/statement-routes.ts';
import { inputSchema } from './operator-schemas.ts';
import { schemaRef } from './contract-schemas.ts';
import type { JsonSchema } from './contract-schemas.ts';

/** An operation of OpenAPI; only what the tests read has a type of its own. */
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly [field: string]: unknown;
}

type PathItem = Readonly<Record<string, unknown>>;

const jsonOf = (name: string): object => ({ 'application/json': { schema: schemaRef(name) } });

const requestId = {
  'x-request-id': { description: 'The id of the request, also in its receipt.', schema: { type: 'string' } },
};

const amount = { type: 'string', pattern: '^\\d{1,16}(\\.\\d{1,9})?$', examples: ['0.05'] };

const charge = {
  'x-textgate-charge': {
    description: 'What was charged, in USD: on whole answers, and on errors after the request was sent.',
    schema: amount,
  },
};

const maxCost = {
  name: 'x-textgate-max-cost',
  in: 'header',
  description: 'The most that the request may cost, in USD; one that may cost more is refused.',
  schema: amount,
};

const failures = {
  '4XX': { description: 'Refused; `error.code` says why.', headers: requestId, content: jsonOf('Error') },
  '5XX': {
    description: 'The service or a provider failed. `x-should-retry: false` where a retry can’t help.',
    headers: requestId,
    content: jsonOf('Error'),
  },
};

function answers(content: object, status = '200'): object {
  return { [status]: { description: 'Done.', headers: requestId, content }, ...failures };
}

/** Answers whose heads have the charge, too. */
function withCharge(responses: object): object {
  return Object.fromEntries(
    Object.entries(responses).map(([status, answer]) => [
      status,
      { ...(answer as object), headers: { ...requestId, ...charge, ...replay } },
    ]),
  );
}

function body(name: string): object {
  return { required: true, content: jsonOf(name) };
}

const replay = {
  'x-textgate-replayed': {
    description: 'On the answer of an earlier request with the same `Idempotency-Key`.',
    schema: { type: 'string', enum: ['true'] },
  },
  'x-textgate-replayable': {
    description: 'On a whole answer to a request with an `Idempotency-Key` that is too long to be had again.',
    schema: { type: 'string', enum: ['false'] },
  },
  'x-textgate-original-request': { description: 'The id of that request.', schema: { type: 'string' } },
};

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'A name for the request: it runs once and is paid once, however often it is sent.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
};

const lastEventId = {
  name: 'Last-Event-ID',
  in: 'header',
  description:
    'The `id` of the last event that was got of a stream with this `Idempotency-Key`: the stream goes on behind it.',
  schema: { type: 'string', pattern: '^[0-9a-f]{8}-[0-9]{1,15}$' },
};

const tag = {
  name: 'x-textgate-tag',
  in: 'header',
  required: false,
  description: 'One of the tags of the key, by which its usage is added up. It is not sent to providers.',
  schema: { type: 'string', maxLength: 64 },
};

function streamOf(event: string): object {
  return {
    'text/event-stream': {
      schema: { type: 'string', description: 'Server-sent events, each with one object in JSON.' },
      'x-event': schemaRef(event),
    },
  };
}

/** A text, whole or as a stream. */
function generation(
  operationId: string,
  summary: string,
  request: string,
  whole: string,
  event: string,
  query: readonly object[] | null = null,
): PathItem {
  const content = { ...jsonOf(whole), ...streamOf(event) };
  const responses = withCharge(answers(content));
  // What operators send to try a key out runs each time.
  const again = query === null ? [idempotencyKey, lastEventId] : [];
  const parameters = [...(query ?? []), tag, maxCost, ...again];
  return {
    post: { operationId, summary, parameters, requestBody: body(request), responses } satisfies Operation,
  };
}

function read(
  operationId: string,
  summary: string,
  name: string,
  parameters: readonly object[] = [],
): Operation {
  return { operationId, summary, parameters, responses: answers(jsonOf(name)) };
}

function change(
  operationId: string,
  summary: string,
  {
    request,
    answer,
    parameters = [],
    status = '200',
  }: {
    readonly request?: string;
    readonly answer: string;
    readonly parameters?: readonly object[];
    readonly status?: string;
  },
): Operation {
  return {
    operationId,
    summary,
    parameters,
    ...(request === undefined ? {} : { requestBody: body(request) }),
    responses: answers(jsonOf(answer), status),
  };
}

function inPath(name: string): object {
  return { name, in: 'path', required: true, schema: { type: 'string' } };
}

/** The parameters of a query, made of the schema that checks it. */
function inQuery(schema: Parameters<typeof inputSchema>[0]): readonly object[] {
  const { properties = {}, required = [] } = inputSchema(schema) as {
    properties?: Readonly<Record<string, JsonSchema>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, value]) => ({
    name,
    in: 'query',
    required: required.includes(name) || undefined,
    schema: value,
  }));
}

function text(
  operationId: string,
  summary: string,
  type: string,
  parameters: readonly object[] = [],
): Operation {
  const schema = type.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' };
  return { operationId, summary, parameters, responses: answers({ [type]: { schema } }) };
}

/** The paths of the listener for clients, by path. */
export const publicPaths: Readonly<Record<string, PathItem>> = {
  '/v1/chat/completions': generation(
    'createChatCompletion',
    'Generates a text, in the protocol Chat Completions.',
    'ChatCompletionRequest',
    'ChatCompletion',
    'ChatCompletionChunk',
  ),
  '/v1/responses': generation(
    'createResponse',
    'Generates a text, in the protocol Responses.',
    'ResponseRequest',
    'Response',
    'ResponseEvent',
  ),
  '/v1/responses/{id}': {
    get: {
      ...read(
        'getResponse',
        'Reads a response to a request with an `Idempotency-Key`, or goes on with its stream, while it is kept.',
        'Response',
        [inPath('id'), ...inQuery(responseQuery)],
      ),
      responses: answers({ ...jsonOf('Response'), ...streamOf('ResponseEvent') }),
    },
  },
  '/v1/responses/{id}/cancel': {
    post: change('cancelResponse', 'Cancels such a response, for all who wait for it.', {
      answer: 'Response',
      parameters: [inPath('id')],
    }),
  },
  '/v1/models': { get: read('listModels', 'Lists the models that the key may use.', 'ModelList') },
  '/v1/models/{model}': { get: read('getModel', 'Shows one model.', 'Model', [inPath('model')]) },
  '/v1/key': { get: read('getOwnKey', 'Shows the key itself: its limits and its balance.', 'OwnKey') },
  '/v1/key/usage': {
    get: {
      ...read('getOwnUsage', 'Adds up the key’s own requests.', 'OwnUsagePage', inQuery(ownUsageQuery)),
      responses: answers({ ...jsonOf('OwnUsagePage'), 'text/csv': { schema: { type: 'string' } } }),
    },
  },
  '/v1/key/statement': {
    get: text(
      'getOwnStatement',
      'A signed statement of the key’s ledger.',
      'text/plain',
      inQuery(statementQuery),
    ),
  },
  '/v1/statement-keys': {
    get: {
      ...read(
        'listStatementKeys',
        'The public keys that sign statements, and the newest root.',
        'StatementKeys',
      ),
      security: [],
    },
  },
  '/v1/key/requests': {
    get: read(
      'listReceipts',
      'Lists the key’s own requests, newest first.',
      'ReceiptPage',
      inQuery(pageQuery),
    ),
  },
  '/v1/key/requests/{request_id}': {
    get: read('getReceipt', 'Shows the receipt of one request.', 'Receipt', [inPath('request_id')]),
  },
  '/v1/key/requests/{request_id}/cancel': {
    post: change('cancelOwnRequest', 'Stops a running request of the key.', {
      answer: 'Cancellation',
      parameters: [inPath('request_id')],
    }),
  },
};

const id = inPath('id');
const oneRequest = inPath('request_id');

const records = read(
  'listRecords',
  'Lists the usage record, newest first. A page that was looked for among a million records may have fewer rows than `limit`, or none, and not be the last: only `next` says so.',
  'RecordPage',
  inQuery(recordQuery),
);

/** The paths of the listener for operators, by path. */
export const adminPaths: Readonly<Record<string, PathItem>> = {
  '/metrics': { get: { ...text('getMetrics', 'The metrics, for Prometheus.', 'text/plain'), security: [] } },
  '/healthz': { get: { ...read('getHealth', 'Whether the process is alive.', 'Health'), security: [] } },
  '/readyz': {
    get: {
      operationId: 'getReadiness',
      summary: 'Whether requests can be taken now, and the state of each upstream.',
      security: [],
      responses: {
        200: { description: 'Ready.', content: jsonOf('Readiness') },
        503: { description: 'Not ready, for the `reason`.', content: jsonOf('Readiness') },
      },
    },
  },
  '/console/session': {
    get: { ...read('getSession', 'Shows who is logged in to the console.', 'Session'), security: [] },
    post: {
      ...change('openSession', 'Changes a token for a session in a cookie.', {
        request: 'Login',
        answer: 'Session',
      }),
      security: [],
    },
    delete: {
      operationId: 'endSession',
      summary: 'Logs out of the console.',
      security: [{ session: [] }],
      responses: { 204: { description: 'Done.', headers: requestId }, ...failures },
    } satisfies Operation,
  },
  '/admin/keys': {
    get: read(
      'listKeys',
      'Lists the keys, newest first: all, or those whose name has a text, or whose id begins with it.',
      'KeyPage',
      inQuery(keyQuery),
    ),
    post: change('createKey', 'Creates a key.', { request: 'NewKey', answer: 'IssuedKey', status: '201' }),
  },
  '/admin/keys/import': {
    post: change('importKey', 'Imports a key of another gateway, whose holder keeps it, by its hash.', {
      request: 'ImportedKey',
      answer: 'KeyImport',
    }),
  },
  '/admin/keys/{id}': {
    get: read('getKey', 'Shows one key.', 'Key', [id]),
    patch: change('changeKey', 'Changes a key; `null` removes a setting.', {
      request: 'ChangedKey',
      answer: 'Key',
      parameters: [id],
    }),
    delete: change('revokeKey', 'Revokes a key.', { answer: 'Key', parameters: [id] }),
  },
  '/admin/keys/{id}/rotate': {
    post: change('rotateKey', 'Creates a new secret; the old one stays valid for the grace period.', {
      request: 'Rotation',
      answer: 'IssuedKey',
      parameters: [id],
    }),
  },
  '/admin/keys/{id}/credits': {
    post: change('creditKey', 'Adds to the balance, once for each reference.', {
      request: 'Payment',
      answer: 'Account',
      parameters: [id],
    }),
  },
  '/admin/groups': {
    get: read('listGroups', 'Lists the groups of the config, with what their keys have spent.', 'GroupPage'),
  },
  '/admin/keys/{id}/statement': {
    get: text('getStatement', 'A signed statement of a key’s ledger.', 'text/plain', [
      id,
      ...inQuery(statementQuery),
    ]),
  },
  '/admin/records': {
    get: {
      ...records,
      responses: answers({ ...jsonOf('RecordPage'), 'text/csv': { schema: { type: 'string' } } }),
    },
  },
  '/admin/audit': {
    get: {
      ...read('listAudit', 'Lists what operators did, newest first.', 'AuditPage', inQuery(auditQuery)),
      responses: answers({ ...jsonOf('AuditPage'), 'text/csv': { schema: { type: 'string' } } }),
    },
  },
  '/admin/records/{request_id}': {
    get: read('getRecord', 'Shows the record of one request.', 'Record', [oneRequest]),
  },
  '/admin/failures': {
    get: read(
      'getFailures',
      'Groups the failures of some time by their causes.',
      'Failures',
      inQuery(failureQuery),
    ),
  },
  '/admin/latency': {
    get: read(
      'getLatencies',
      'Says how long the calls of each upstream for each model took in some time.',
      'Latencies',
      inQuery(latencyQuery),
    ),
  },
  '/admin/usage': {
    get: {
      ...read('getUsage', 'Adds up the requests of all keys.', 'UsagePage', inQuery(usageQuery)),
      responses: answers({ ...jsonOf('UsagePage'), 'text/csv': { schema: { type: 'string' } } }),
    },
  },
  '/admin/archive': {
    get: {
      operationId: 'readArchive',
      summary: 'All records from before a time, as JSON lines or CSV.',
      parameters: inQuery(archiveQuery),
      responses: answers({
        'application/x-ndjson': { schema: { type: 'string' } },
        'text/csv': { schema: { type: 'string' } },
      }),
    } satisfies Operation,
  },
  '/admin/archive/removals': {
    post: change('removeRecords', 'Removes archived records.', { request: 'Removal', answer: 'Removed' }),
  },
  '/admin/archive/folds': {
    post: change('foldLedger', 'Adds up the postings of removed records.', { answer: 'Folded' }),
  },
  '/admin/webhooks': { get: read('listWebhooks', 'Lists the webhooks of the config.', 'WebhookPage') },
  '/admin/webhooks/deliveries': {
    get: read(
      'listDeliveries',
      'Lists deliveries of events, newest first.',
      'DeliveryPage',
      inQuery(deliveryQuery),
    ),
  },
  '/admin/webhooks/{name}/test': {
    post: change('testWebhook', 'Sends a webhook one event at once.', {
      answer: 'WebhookTest',
      parameters: [inPath('name')],
    }),
  },
  '/admin/webhooks/events/{event_id}/resend': {
    post: change('resendEvent', 'Delivers an event once more, under its id.', {
      request: 'Resending',
      answer: 'Resent',
      parameters: [inPath('event_id')],
    }),
  },
  '/admin/status': {
    get: {
      ...read('getStatus', 'Shows what runs now, and why it waits.', 'Status', inQuery(statusQuery)),
      responses: answers({
        ...jsonOf('Status'),
        'text/event-stream': {
          schema: { type: 'string', description: 'Events `status` with one object each, as it changes.' },
          'x-event': schemaRef('Status'),
        },
      }),
    },
  },
  '/admin/history': {
    get: read('getHistory', 'Shows what happened in the last day.', 'History', inQuery(historyQuery)),
  },
  '/admin/upstreams': {
    get: read(
      'listUpstreams',
      'Lists the upstreams of the config, with what is known of each.',
      'UpstreamPage',
    ),
  },
  '/admin/upstreams/{name}/doctor': {
    post: {
      operationId: 'examineUpstream',
      summary: 'Checks an upstream with about ten calls, which cost a few hundred tokens.',
      parameters: [inPath('name')],
      requestBody: { ...body('Examination'), required: false },
      responses: answers({
        ...jsonOf('DoctorReport'),
        'text/event-stream': {
          schema: {
            type: 'string',
            description: 'Events `check` with one check each, then one event `report`.',
          },
          'x-event': schemaRef('DoctorReport'),
        },
      }),
    } satisfies Operation,
  },
  '/admin/shadow': {
    get: read(
      'listShadows',
      'Lists the shadow routes of models, with what was found by comparing.',
      'ShadowPage',
    ),
  },
  '/admin/in-flight': {
    get: read('listRunningRequests', 'Lists the requests in progress.', 'RunningRequestPage'),
  },
  '/admin/in-flight/{request_id}/cancel': {
    post: change('cancelRequest', 'Stops a request in progress.', {
      answer: 'Cancellation',
      parameters: [oneRequest],
    }),
  },
  '/admin/try/chat/completions': generation(
    'tryChatCompletion',
    'Generates a text as a key, in the protocol Chat Completions; recorded and charged as the key’s own.',
    'ChatCompletionRequest',
    'ChatCompletion',
    'ChatCompletionChunk',
    inQuery(tryOutQuery),
  ),
  '/admin/try/responses': generation(
    'tryResponse',
    'Generates a text as a key, in the protocol Responses; recorded and charged as the key’s own.',
    'ResponseRequest',
    'Response',
    'ResponseEvent',
    inQuery(tryOutQuery),
  ),
  '/admin/try/models': {
    get: read('listModelsToTry', 'Lists the models that a key may use.', 'ModelList', inQuery(tryOutQuery)),
  },
  '/admin/ledger': { get: read('verifyLedger', 'Recomputes the ledger; may take minutes.', 'Ledger') },
  '/admin/ledger/roots': {
    get: read(
      'listLedgerRoots',
      'Lists the roots over all ledgers, newest first.',
      'LedgerRootPage',
      inQuery(rootQuery),
    ),
  },
  '/admin/backup': {
    get: text('downloadBackup', 'A consistent copy of the SQLite database.', 'application/vnd.sqlite3'),
  },
};
