import type { Mutation } from './mutation.ts';

const statements = 'src/storage/outbox/deliveries.ts';
const job = 'src/background/webhooks/deliver-webhooks.ts';
const line = 'src/background/webhooks/deliver-webhooks.ts';
const client = 'src/transport/webhook-client.ts';

/** What the outbox must do over an engine. */
const conformance = ['test/conformance/sqlite.test.ts', '-t', 'events and deliveries'];
const jobTests = ['test/background/deliver-webhooks.test.ts'];
const clientTests = ['test/transport/webhook-client.test.ts'];

/** Faults of events on their way to webhooks. */
export const webhookFaults: readonly Mutation[] = [
  {
    name: 'an event that is sent before the earlier one of its subject has ended',
    file: statements,
    find: 'AND earlier.ended_at IS NULL AND earlier.number < webhook_deliveries.number)`,\n    sql`UPDATE outbox',
    replace: 'AND 1 = 0)`,\n    sql`UPDATE outbox',
    tests: conformance,
  },
  {
    name: 'an event that is never due behind one that was delivered',
    file: statements,
    find: 'AND subject = ${subject} AND ended_at IS NULL ORDER BY number LIMIT 1)`',
    replace: 'AND subject = ${subject} AND ended_at IS NULL AND 1 = 0 ORDER BY number LIMIT 1)`',
    tests: conformance,
  },
  {
    name: 'a delivery that ended and is ended anew by a late result',
    file: statements,
    find: "WHERE event_id = ${id} AND webhook = ${webhook} AND state = 'waiting'`,\n    sql`",
    replace: 'WHERE event_id = ${id} AND webhook = ${webhook}`,\n    sql`',
    tests: conformance,
  },
  {
    name: 'a delivery that ended and waits again after a late failure',
    file: statements,
    find: "WHERE event_id = ${id} AND webhook = ${webhook} AND state = 'waiting'`;",
    replace: 'WHERE event_id = ${id} AND webhook = ${webhook}`;',
    tests: conformance,
  },
  {
    name: 'events that stay behind one that was given up for a removed webhook',
    file: statements,
    find: 'WHERE ended_at IS NULL AND due_at IS NULL AND webhook NOT IN',
    replace: 'WHERE 1 = 0 AND webhook NOT IN',
    tests: conformance,
  },
  {
    name: 'events of a webhook of the config that are given up as those of a removed one',
    file: statements,
    find: 'AND webhook NOT IN (SELECT name FROM wanted)`,\n    sql`',
    replace: 'AND 0 < (SELECT count(name) + 1 FROM wanted)`,\n    sql`',
    tests: conformance,
  },
  {
    name: 'deliveries that are due a day late after the clock was set back',
    file: statements,
    find: 'AND due_at > (SELECT now_ms()) + CAST(${longestMs} AS BIGINT)',
    replace: 'AND due_at > (SELECT now_ms()) * 2 + CAST(${longestMs} AS BIGINT)',
    tests: conformance,
  },
  {
    name: 'numbers of deliveries that begin anew when all were removed',
    file: statements,
    find: 'UNION ALL SELECT now_ms()) AS starts',
    replace: 'UNION ALL SELECT 0) AS starts',
    tests: conformance,
  },
  {
    name: 'an age of waiting events that counts those of removed webhooks',
    file: statements,
    find: 'AND EXISTS (SELECT 1 FROM wanted WHERE name = webhook) ORDER BY since',
    replace: 'AND 0 <= (SELECT count(*) FROM wanted) ORDER BY since',
    tests: conformance,
  },
  {
    name: 'a name that is forgotten although it must be remembered, so that its event comes again',
    file: statements,
    find: 'AND stage = 2 AND kept_until < (SELECT now_ms())',
    replace: 'AND stage = 2',
    tests: conformance,
  },
  {
    name: 'an event that is sent again with the attempts that it had',
    file: statements,
    find: 'SET attempts = 0, ended_at = NULL',
    replace: 'SET ended_at = NULL',
    tests: conformance,
  },
  {
    name: 'more events on their way to one webhook than its bound',
    file: line,
    find: 'if (webhook === null || this.#running.size >= maxInFlight) return;',
    replace: 'if (webhook === null) return;',
    tests: jobTests,
  },
  {
    name: 'an event that a read sends although its attempt ended during the read',
    file: line,
    find: 'if (this.#running.has(id) || this.#endedMeanwhile.has(id)) continue;',
    replace: 'if (this.#running.has(id)) continue;',
    tests: jobTests,
  },
  {
    name: 'the result of an attempt that is forgotten when the database does not take it',
    file: line,
    find: "'the result of a delivery could not be written: it is tried again', error);",
    replace:
      "'the result of a delivery could not be written: it is tried again', error);\n        return false;",
    tests: jobTests,
  },
  {
    name: 'an attempt that counts as failed because the gateway ended it',
    file: line,
    find: "if (result.kind === 'interrupted') return false;",
    replace: '',
    tests: jobTests,
  },
  {
    name: 'an event that is attempted forever',
    file: line,
    find: 'if (failures >= maxAttempts) {',
    replace: 'if (failures >= Infinity) {',
    tests: jobTests,
  },
  {
    name: 'a pause that a receiver asks for and does not get',
    file: line,
    find: 'retryDelayMs(failures, retryAfterMs, random())',
    replace: 'retryDelayMs(failures, null, random())',
    tests: jobTests,
  },
  {
    name: 'a process without webhooks that keeps the duty to deliver',
    file: job,
    find: 'await duty.giveUp();',
    replace: '',
    tests: jobTests,
  },
  {
    name: 'a redirect that counts as accepted',
    file: client,
    find: 'status <= 299',
    replace: 'status <= 399',
    tests: clientTests,
  },
  {
    name: 'an answer without an end that is read until its deadline',
    file: client,
    find: 'bytes < maxAnswerBytes;',
    replace: 'bytes < Infinity;',
    tests: clientTests,
  },
  {
    name: 'a kept connection that its receiver closed, which counts as a failed attempt',
    file: client,
    find: "answer.fault === 'stale' ?",
    replace: "answer.fault === 'interrupted' ?",
    tests: clientTests,
  },
  {
    name: 'an address of a receiver that is sent without its query',
    file: client,
    find: 'url.pathname + url.search;',
    replace: 'url.pathname;',
    tests: clientTests,
  },
  {
    name: 'a second secret that signs nothing',
    file: 'src/shared/webhook-signature.ts',
    find: 'secrets.map(',
    replace: 'secrets.slice(0, 1).map(',
    tests: ['test/docs/webhooks.test.ts'],
  },
  {
    name: 'a secret in base64 that is taken for the key itself',
    file: 'src/shared/webhook-signature.ts',
    find: 'return secret.startsWith(standardPrefix)',
    replace: 'return secret.startsWith("-")',
    tests: ['test/docs/webhooks.test.ts'],
  },
  {
    name: 'events that are sent to a link-local address',
    file: 'src/composition/webhook-services.ts',
    find: 'allowLinkLocal: false,',
    replace: 'allowLinkLocal: true,',
    tests: ['test/composition/webhook-services.test.ts'],
  },
  {
    name: 'an event that ends the process because it can not be written',
    file: line,
    find: "onFault('an event could not be written', error, { event: event.id, type: event.type });",
    replace: 'throw error;',
    tests: jobTests,
  },
  {
    name: 'an attempt that breaks because the config was replaced',
    file: 'src/composition/active-services.ts',
    find: '[...requestsEnded, services.attemptsEnded()]',
    replace: 'requestsEnded',
    tests: ['test/e2e/webhooks.test.ts', '-t', 'runs while the config is replaced'],
  },
];
