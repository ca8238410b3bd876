import { expect, test } from 'vitest';
import type { Connection } from '../../src/http/connections/connection.ts';
import { awaitsNoBody, mayTakeRawRefusal } from '../../src/http/connections/pending-answers.ts';

interface Pending {
  readonly headersSent?: boolean;
  readonly complete?: boolean;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A connection with these answers pending. */
function connectionWith(...answers: readonly Pending[]): Connection {
  const pending = answers.map(({ headersSent = false, complete = false, method = 'POST', headers = {} }) => ({
    headersSent,
    req: { complete, method, headers },
  }));
  return { pending, isIdle: pending.length === 0 } as unknown as Connection;
}

test.each<[string, readonly Pending[], boolean]>([
  ['where no answer is pending', [], true],
  ['where the only request can not be read to its end', [{}], true],
  ['but not where that is read', [{ complete: true }], false],
  ['nor where something of its answer is sent', [{ headersSent: true }], false],
  ['nor where another answer is pending', [{}, {}], false],
])('a refusal may be written to the socket %s', (_when, answers, may) => {
  expect(mayTakeRawRefusal(connectionWith(...answers))).toBe(may);
});

test.each<[string, readonly Pending[], boolean]>([
  ['where the only request announces no body', [{}], true],
  ['but not where none is pending', [], false],
  ['nor where it has a length', [{ headers: { 'content-length': '1' } }], false],
  ['nor where it comes in chunks', [{ headers: { 'transfer-encoding': 'chunked' } }], false],
  ['nor where its method has no body', [{ method: 'GET' }], false],
  ['nor where something of its answer is sent', [{ headersSent: true }], false],
  ['nor where another answer is pending', [{}, {}], false],
])('bytes behind a head are a body without a length %s', (_when, answers, are) => {
  expect(awaitsNoBody(connectionWith(...answers))).toBe(are);
});
