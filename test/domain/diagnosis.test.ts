import { describe, expect, test } from 'vitest';
import { describeTarget } from '../../src/domain/diagnosis/call-target.ts';
import { namesInConfig } from '../../src/config/setting-names.ts';
import { diagnose, sentencesOf } from '../../src/domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../../src/domain/diagnosis/diagnose.ts';
import type { FailureKind } from '../../src/protocol/text.ts';
import { localTarget } from '../support/call-target.ts';

/** The sentences about a failed `GET /models`. */
const explain = (result: FailedCall, url = 'http://model.test:8000/v1', hasKey = true): string =>
  sentencesOf(
    diagnose({ method: 'GET', path: '/models?limit=1000', target: localTarget(url, hasKey) }, result),
  );
const fault = (code: string): FailedCall => ({ kind: 'fault', fault: 'unreachable', code, cause: 'details' });
const status = (code: number, contentType = 'application/json'): FailedCall => ({
  kind: 'answer',
  status: code,
  contentType,
});

describe('the diagnosis of a failed call', () => {
  test.each<[code: string, cause: string, advice: string]>([
    [
      'ECONNREFUSED',
      'connection refused',
      'Start the server, or correct the host and port of upstreams.local.url.',
    ],
    ['ENOTFOUND', 'the host name model.test has no address', 'Correct the host of upstreams.local.url, or'],
    ['EAI_AGAIN', 'the host name model.test could not be resolved', 'Check that the DNS server'],
    ['EHOSTUNREACH', 'there is no network route to the host', 'Check the network'],
    ['ENETUNREACH', 'there is no network route to the host', 'the host of upstreams.local.url'],
    ['ETIMEDOUT', 'the connection could not be opened in time', 'firewalls'],
    ['UND_ERR_CONNECT_TIMEOUT', 'the connection could not be opened in time', 'firewalls'],
    ['EPERM', 'the system does not permit the connection', 'sandbox'],
    ['EMFILE', 'no more files or sockets may be opened', 'ulimit -n'],
    [
      'LINK_LOCAL_REFUSED',
      'model.test is resolved to a link-local address',
      'upstreams.local.allowLinkLocal: true',
    ],
    [
      'ERR_SSL_WRONG_VERSION_NUMBER',
      'does not use TLS on this port',
      'http:// instead of https:// in upstreams',
    ],
    ['EPROTO', 'does not use TLS on this port', 'http:// instead of https:// in upstreams.local.url'],
    ['HPE_INVALID_CONSTANT', 'the answer is not HTTP', 'https:// instead of http:// in upstreams.local.url'],
    [
      'ECONNRESET',
      'the server closed the connection without an answer',
      'write https:// in upstreams.local.url',
    ],
    ['UND_ERR_SOCKET', 'the server closed the connection without an answer', 'Check the log of the server'],
    ['CERT_HAS_EXPIRED', "the server's certificate has expired", 'Renew the certificate'],
    ['CERT_NOT_YET_VALID', "the server's certificate is not valid yet", 'Check the clocks'],
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      "the server's certificate is self-signed",
      'Set upstreams.local.tls.ca to',
    ],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'signed by an unknown authority', 'Set upstreams.local.tls.ca to'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'signed by an unknown authority', 'Set upstreams.local.tls.ca to'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'signed by an unknown authority', 'Set upstreams.local.tls.ca to'],
    [
      'ERR_TLS_CERT_ALTNAME_INVALID',
      "the server's certificate is not for model.test",
      'Use a host name of the',
    ],
    ['CERT_REVOKED', 'the TLS connection failed', 'Check the certificate of the server'],
    ['EWHATEVER', 'the connection failed (details)', 'Check upstreams.local.url'],
  ])('names the cause of %s, and what to do', (code, cause, advice) => {
    const sentences = explain(fault(code));
    expect(sentences).toMatch(/^GET http:\/\/model\.test:8000\/v1\/models: /);
    expect(sentences).toContain(cause);
    expect(sentences).toContain(advice);
    expect(sentences).toMatch(/[^.]\. [A-Z].*\.$/);
  });

  test.each<[status: number, sentences: RegExp]>([
    [401, /an API key is required \(status 401\)\. Set upstreams\.local\.apiKey\.$/],
    [402, /Set upstreams\.local\.apiKey: the key of an account with credit\.$/],
    [403, /not permitted without an API key \(status 403\)\. Set upstreams\.local\.apiKey,/],
    [429, /Wait, raise the limits of the server, or set upstreams\.local\.apiKey\.$/],
  ])('speaks of no key or account where none is set: status %d', (code, sentences) => {
    const said = explain(status(code), undefined, false);
    expect(said).toMatch(sentences);
    expect(said).not.toMatch(/[Cc]orrect|the account of the key in/);
  });

  test.each<[status: number, cause: string, advice: string]>([
    [301, 'a redirect, which is not followed (status 301)', 'Write the address to which it leads into'],
    [400, 'the request is refused (status 400)', 'Check upstreams.local.url and upstreams.local.apiKey.'],
    [401, 'the API key is not accepted (status 401)', 'Correct upstreams.local.apiKey.'],
    [402, 'payment is required (status 402)', 'upstreams.local.apiKey'],
    [403, 'the API key has no permission (status 403)', 'upstreams.local.apiKey'],
    [404, 'not found (status 404)', 'Check the path of upstreams.local.url'],
    [405, 'GET is not allowed there (status 405)', 'Check the path of upstreams.local.url'],
    [408, 'timeout at the provider (status 408)', 'load'],
    [413, 'the request is refused (status 413)', 'Check'],
    [422, 'the request is refused (status 422)', 'Check'],
    [429, 'too many requests, or no quota left (status 429)', 'raise the limits of the account'],
    [500, 'the server failed (status 500)', 'Check its log'],
    [502, 'the server failed (status 502)', 'Check its log'],
    [503, 'not ready or overloaded (status 503)', 'Wait: a server that loads a model'],
    [504, 'timeout at the provider (status 504)', 'load'],
    [200, 'the answer is not a list of models', 'Check the path of upstreams.local.url'],
  ])('names the cause of status %i, and what to do', (code, cause, advice) => {
    const sentences = explain(status(code));
    expect(sentences).toContain(`GET http://model.test:8000/v1/models: ${cause}`);
    expect(sentences).toContain(advice);
  });

  test('tells a web page from an answer', () => {
    expect(explain(status(200, 'text/html; charset=utf-8'))).toContain('a web page instead of JSON');
  });

  test.each<[url: string, isSuggested: boolean]>([
    ['http://127.0.0.1:8000', true],
    ['http://127.0.0.1:8000/', true],
    ['http://v1/openai', true],
    ['http://127.0.0.1:8000/v1', false],
    ['http://127.0.0.1:8000/v1/', false],
    ['https://generativelanguage.test/v1beta', false],
    ['https://api.test/openai/v2/other', false],
  ])('suggests a missing /v1 only for a path without a version: %s', (url, isSuggested) => {
    for (const result of [status(404), status(200), status(200, 'text/html')])
      expect(explain(result, url).includes('Is /v1 missing at the end of')).toBe(isSuggested);
  });

  test('says that a key is required where none is set', () => {
    const sentences = explain(status(401), 'http://127.0.0.1:8000/v1', false);
    expect(sentences).toContain('an API key is required (status 401). Set upstreams.local.apiKey.');
  });

  test.each(['interrupted', 'first_byte_timeout', 'total_timeout'] as const)(
    'names the time limit of a call that ended by %s',
    (kind) => {
      const call = { method: 'GET', path: '/models', target: localTarget() } as const;
      const result = { kind: 'fault', fault: kind } as const;
      expect(diagnose({ ...call, limitMs: 5_000 }, result).cause).toMatch(/: no answer within 5 s$/);
      expect(diagnose(call, result).cause).toMatch(/: no answer in time$/);
    },
  );

  test.each(['stale', 'broken', 'idle_timeout', 'unread'] as const)('has its own words for %s', (kind) => {
    expect(explain({ kind: 'fault', fault: kind })).toMatch(/models: [a-z ]+\. [A-Z].*\.$/);
  });

  test('names the container where a loopback address is refused', () => {
    expect(explain(fault('ECONNREFUSED'), 'http://localhost:8000/v1')).toContain(
      '(in a container, localhost is the container itself)',
    );
    expect(explain(fault('ECONNREFUSED'), 'http://[::1]:8000/v1')).toContain('in a container, ::1 is');
    expect(explain(fault('ECONNREFUSED'))).not.toContain('container');
  });

  test('keeps user, password and query values of the address to itself', () => {
    const url = new URL('https://user:secret-1@model.test/v1/?key=secret-2&api-version=secret-3');
    const target = describeTarget(url, true, namesInConfig('model'));
    expect(JSON.stringify(target)).not.toContain('secret');
    const { cause } = diagnose({ method: 'POST', path: '/chat/completions', target }, status(404));
    expect(cause).toBe(
      'POST https://model.test/v1/chat/completions?key=…&api-version=…: not found (status 404)',
    );
  });

  test('looks for the fault in a client’s request that is refused, and not in the settings', () => {
    const call = { method: 'POST', path: '/chat/completions', target: localTarget() } as const;
    for (const code of [400, 413, 422])
      expect(diagnose(call, status(code)).advice).toBe(
        'The fault is most likely in the request: see what the provider said of it.',
      );
  });

  test.each<[status: number, kind: FailureKind, cause: string, advice: string]>([
    [400, 'auth', 'the API key or its account is not accepted', 'Correct upstreams.local.apiKey, or check'],
    [401, 'auth', 'the API key is not accepted', 'Correct upstreams.local.apiKey.'],
    [403, 'auth', 'the API key has no permission', 'put another key into upstreams.local.apiKey.'],
    [404, 'model_unknown', 'the model is not known there', 'Correct the name of the model'],
    [403, 'content_filtered', 'the text is refused because of its content', 'The upstream is not at fault'],
    [500, 'content_filtered', 'the text is refused because of its content', 'The upstream is not at fault'],
    [400, 'context_too_long', 'the text is longer than the context of the model', 'Shorten the text'],
    [400, 'rejected', 'the request is refused', 'The fault is most likely in the request'],
    [500, 'server_error', 'the server failed', 'Check its log'],
  ])('of a %i that is classified as %s agrees with it', (code, kind, cause, advice) => {
    const call = { method: 'POST', path: '/chat/completions', target: localTarget('http://a.test') } as const;
    const diagnosis = diagnose(call, status(code), kind);
    expect(diagnosis.cause).toMatch(new RegExp(`: ${cause} \\(status ${code}\\)$`));
    expect(diagnosis.advice).toContain(advice);
    expect(diagnosis.advice).not.toContain('/v1');
  });

  test('asks for the name of the model where an answer was not found', () => {
    const call = { method: 'POST', path: '/chat/completions', target: localTarget() } as const;
    expect(diagnose(call, status(404)).advice).toBe(
      'Check the path of upstreams.local.url, or the name of the model.',
    );
  });
});
