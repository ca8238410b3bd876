import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { environmentConfig } from '../../src/config/load.ts';
import { namesInConfig, namesInEnvironment } from '../../src/config/setting-names.ts';
import type { SettingNames } from '../../src/domain/diagnosis/call-target.ts';
import { composeGateway } from '../../src/gateway.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import { startTlsServer } from '../support/tls-server.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

/** A provider that answers every call with one status; resolves with its base URL. */
async function answering(status: number, body = '{}', contentType = 'application/json'): Promise<string> {
  const provider = await startUpstream();
  provider.play((response) => void response.writeHead(status, { 'content-type': contentType }).end(body));
  open.push(() => provider.close());
  return provider.url;
}

async function listeningNoMore(): Promise<string> {
  const provider = await startUpstream();
  await provider.close();
  return provider.url;
}

async function withTls(): Promise<string> {
  const server = await startTlsServer((_request, response) => void response.end('{}'));
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://localhost:${(server.address() as AddressInfo).port}/v1`;
}

const words = (message: string): string => JSON.stringify({ error: { message, type: 'x', code: null } });

/** How a provider may be at fault: its base URL, the cause that operators read, and the advice with the names of settings. */
interface Fault {
  readonly provider: () => Promise<string>;
  readonly cause: string;
  readonly advice: (names: SettingNames) => string;
  /** The cause and the advice for a client's request, as far as they are others. */
  readonly onRequest?: { readonly cause?: string; readonly advice: string };
}

const inTheRequest = { advice: 'The fault is most likely in the request' };

const faults: Readonly<Record<string, Fault>> = {
  refused: {
    provider: listeningNoMore,
    cause: 'connection refused',
    advice: ({ url }) => `Start the server, or correct the host and port of ${url}`,
  },
  DNS: {
    provider: async () => 'http://nosuch.invalid:8000/v1',
    cause: 'the host name nosuch.invalid ',
    advice: () => 'DNS',
  },
  'a certificate that is not trusted': {
    provider: withTls,
    cause: "the server's certificate is self-signed",
    advice: ({ ca }) => `Set ${ca} to a file with this certificate`,
  },
  'TLS to a plain port': {
    provider: async () => (await answering(200)).replace('http:', 'https:'),
    cause: 'the server does not use TLS on this port',
    advice: ({ url }) => `Write http:// instead of https:// in ${url}`,
  },
  401: {
    provider: () => answering(401, words('Incorrect API key provided')),
    cause: 'the API key is not accepted (status 401)',
    advice: ({ apiKey }) => `Correct ${apiKey}.`,
  },
  403: {
    provider: () => answering(403),
    cause: 'the API key has no permission (status 403)',
    advice: ({ apiKey }) => `put another key into ${apiKey}.`,
  },
  404: {
    provider: async () => (await answering(404)).replace('/v1', ''),
    cause: 'not found (status 404)',
    advice: ({ url }) => `Is /v1 missing at the end of ${url}?`,
  },
  '400 with words': {
    provider: () => answering(400, words('max_tokens is too large')),
    cause: 'the request is refused (status 400)',
    advice: ({ url, apiKey }) => `Check ${url} and ${apiKey}.`,
    onRequest: inTheRequest,
  },
  '400 about the key': {
    provider: () => answering(400, JSON.stringify({ error: { details: [{ reason: 'API_KEY_INVALID' }] } })),
    cause: 'the request is refused (status 400)',
    advice: ({ url, apiKey }) => `Check ${url} and ${apiKey}.`,
    onRequest: {
      cause: 'the API key or its account is not accepted (status 400)',
      advice: 'Correct upstreams.local.apiKey, or check its account at the provider.',
    },
  },
  '403 about the text': {
    provider: () => answering(403, JSON.stringify({ error: { metadata: { flagged_input: 'x' } } })),
    cause: 'the API key has no permission (status 403)',
    advice: ({ apiKey }) => `put another key into ${apiKey}.`,
    onRequest: {
      cause: 'the text is refused because of its content (status 403)',
      advice: 'The upstream is not at fault',
    },
  },
  '404 about the model': {
    provider: () => answering(404, JSON.stringify({ error: { code: 'model_not_found' } })),
    cause: 'not found (status 404)',
    advice: ({ url }) => `Check the path of ${url}`,
    onRequest: {
      cause: 'the model is not known there (status 404)',
      advice: 'Correct the name of the model',
    },
  },
  413: {
    provider: () => answering(413),
    cause: 'the request is refused (status 413)',
    advice: ({ url }) => `Check ${url}`,
    onRequest: inTheRequest,
  },
  422: {
    provider: () => answering(422),
    cause: 'the request is refused (status 422)',
    advice: ({ url }) => `Check ${url}`,
    onRequest: inTheRequest,
  },
  429: {
    provider: () => answering(429),
    cause: 'too many requests, or no quota left (status 429)',
    advice: ({ apiKey }) => `raise the limits of the account of the key in ${apiKey}.`,
  },
  '500 with words': {
    provider: () => answering(500, words('CUDA out of memory')),
    cause: 'the server failed (status 500)',
    advice: () => 'Check its log',
  },
};

const webPage: Fault = {
  provider: () => answering(200, '<html>', 'text/html'),
  cause: 'a web page instead of JSON',
  advice: ({ url }) => `Check the path of ${url}`,
};

const allFaults = Object.entries({ ...faults, 'a web page': webPage });

/** A gateway over a provider whose models are discovered, and all that its operator and a client get to read. */
interface Started {
  readonly log: () => readonly Record<string, unknown>[];
  readonly ask: (path: string, body?: object) => Promise<string>;
  readonly ready: () => Promise<{ reason: string; upstreams: Record<string, unknown> }>;
}

async function startWithConfig(url: string, discover: boolean): Promise<Started> {
  let written = '';
  const logDestination = { write: (line: string) => void (written += line) };
  const gateway = await startGateway({ upstreamUrl: url, discover, logDestination });
  open.push(() => gateway.close());
  return {
    log: () => linesOf(written),
    ask: async (path, body) => (await gateway.post(path, body ?? {})).text(),
    ready: async () => (await (await fetch(`${gateway.adminUrl}/readyz`)).json()) as never,
  };
}

async function startWithEnvironment(url: string): Promise<Started> {
  const environment = {
    TEXTGATE_UPSTREAM_URL: url,
    TEXTGATE_UPSTREAM_API_KEY: 'sk-upstream-secret',
    TEXTGATE_PORT: '0',
    TEXTGATE_ADMIN_PORT: '0',
  };
  const config = environmentConfig(environment);
  let written = '';
  const logDestination = { write: (line: string) => void (written += line) };
  const gateway = composeGateway(
    {
      ...config,
      storage: { url: 'sqlite::memory:', durability: 'normal', allowMigrated: false, spool: 'none' },
    },
    { logLevel: 'info', logDestination },
    namesInEnvironment,
  );
  const { url: served, adminUrl } = await gateway.listen();
  open.push(() => gateway.close());
  const { key: secret } = await gateway.keys.create({ name: 'test' });
  return {
    log: () => linesOf(written),
    ask: async (path, body) =>
      (
        await fetch(served + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).text(),
    ready: async () => (await (await fetch(`${adminUrl}/readyz`)).json()) as never,
  };
}

function linesOf(written: string): readonly Record<string, unknown>[] {
  return written
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Escapes what has a meaning in a regular expression. */
const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

/** Nothing that a client reads may name the provider's address or the operator's settings. */
function expectNoAddress(text: string, url: string): void {
  for (const hidden of [new URL(url).host, 'upstreams.', 'TEXTGATE_', 'sk-upstream-secret'])
    expect(text).not.toContain(hidden);
}

describe.each([
  {
    mode: 'a config',
    start: (url: string) => startWithConfig(url, true),
    nameOf: () => 'local',
    names: namesInConfig('local'),
  },
  {
    mode: 'the environment',
    start: startWithEnvironment,
    nameOf: (url: string) => new URL(url).host,
    names: namesInEnvironment(),
  },
])('with the upstream of $mode', ({ start, nameOf, names }) => {
  test.each(allFaults)(
    'the list of models fails by %s: log and /readyz name the cause and what to do',
    async (_name, { provider, cause, advice }) => {
      const url = await provider();
      const gateway = await start(url);
      expectNoAddress(await gateway.ask('/v1/chat/completions', body), url);
      const { reason, upstreams } = await gateway.ready();
      const sentences = gateway.log().find(({ msg }) => msg === 'model discovery failed')?.['reason'];
      expect(sentences).toMatch(new RegExp(`^GET ${literal(url)}/models: ${literal(cause)}`));
      expect(sentences).toContain(advice(names));
      expect(reason).toBe(`no list of models from the upstream yet: ${String(sentences)}`);
      expect(upstreams).toEqual({ [nameOf(url)]: { state: 'failing', cause: sentences } });
      const logged = gateway.log().filter(({ msg }) => msg === 'model discovery failed');
      expect(logged).toMatchObject([{ upstream: nameOf(url) }]);
      expect(JSON.stringify(gateway.log())).not.toContain('sk-upstream-secret');
    },
  );
});

describe('with a model of a config', () => {
  const names = namesInConfig('local');
  test.each(Object.entries(faults))(
    'a request fails by %s: the attempt in the log names the cause and what to do',
    async (_name, { provider, cause, advice, onRequest }) => {
      const url = await provider();
      const gateway = await startWithConfig(url, false);
      expect((await gateway.ready()).upstreams).toEqual({ local: { state: 'unknown' } });
      expectNoAddress(await gateway.ask('/v1/chat/completions', body), url);
      const line = gateway.log().find(({ msg }) => msg === 'request');
      const sentences = String(line?.['cause']);
      expect(sentences.startsWith(`POST ${url}/chat/completions: ${onRequest?.cause ?? cause}`)).toBe(true);
      expect(sentences).toContain(onRequest?.advice ?? advice(names));
    },
  );
});
