/** Serves a route file as Next does: the handler by the request's method gets a `NextRequest`. */
export const nextHost = `
import { serve } from '@hono/node-server';
import { NextRequest } from 'next/server.js';
import * as route from './app/v1/[...path]/route.ts';

const handlers = new Map<string, (request: Request) => Promise<Response>>(Object.entries(route));
serve({
  port: 3000,
  fetch: ({ url, method, headers, body, signal }) =>
    handlers.get(method)!(new NextRequest(url, { method, headers, body, signal, duplex: 'half' })),
});
`;

/** Serves the gateway's router behind a bare server of Node. */
export const bareRouter = `
import { createServer } from 'node:http';
import { gateway } from './gateway.ts';
createServer((request, response) => {
  gateway.router(request, response, () => response.writeHead(418).end());
}).listen(3000);
`;

/** The same from CommonJS; `GATEWAY` is where the gateway is made. */
export const commonJs = `
const { createServer } = require('node:http');
const { createGateway } = require('textgate');
GATEWAY
createServer(gateway.router).listen(3000);
module.exports = { gateway };
`;

/** Uses every export of the package. */
export const everyExport = `
import { ConfigError, GatewayError, createGateway } from 'textgate';
import type {
  Clock, ConfigInput, CreditResult, ErrorCode, Gateway, GatewayOptions, IssuedKey, Key, KeyChanges, KeyPayment, KeyQuery,
  KeyRotation, KeySettings, Keys, LogFormat, LogLevel, NodeHandler, Page, RecordQuery, Records, RunningRequest, UsageRecord,
} from 'textgate';

export const config: ConfigInput = { upstreams: { demo: { url: 'demo:' } }, models: { from: 'demo' } };
export const clock: Clock = { now: Date.now, monotonicMs: () => performance.now(), schedule: () => () => {} };
const [logLevel, logFormat]: [LogLevel, LogFormat] = ['silent', 'json'];
export const options: GatewayOptions = { clock, logLevel, logFormat };
export const gateway: Gateway = createGateway(config, options);
export const handler: NodeHandler = gateway.router;
export const keys: Keys = gateway.keys;
export const records: Records = gateway.records;
const settings: KeySettings = { name: 'x', balance: '1.00', queueWait: '5s', models: ['small'] };
const changes: KeyChanges = { concurrency: null };
export async function use(): Promise<string | null | undefined> {
  const issued: IssuedKey = await keys.create(settings);
  const key: Key = await keys.update(issued.id, changes);
  const payment: KeyPayment = { amount: '1', reference: 'r' };
  const paid: CreditResult = await keys.credit(key.id, payment);
  const rotation: KeyRotation = { grace: '10m' };
  await keys.rotate(key.id, rotation);
  const [first, one]: [KeyQuery, RecordQuery] = [{ limit: 1 }, { key: paid.id, limit: '1' }];
  await keys.list(first);
  const page: Page<UsageRecord> = await records.list(one);
  const running: Page<RunningRequest> = await gateway.inFlight();
  return page.data[0]?.usage?.total_tokens.toFixed() ?? running.data[0]?.model ?? key.limits.queue_wait_ms.toFixed();
}
export const codeOf = (error: unknown): ErrorCode | readonly string[] | null =>
  error instanceof GatewayError ? error.code : error instanceof ConfigError ? error.problems : null;
// @ts-expect-error a misspelt setting is found
void keys.create({ name: 'x', balence: '1' });
// @ts-expect-error a limit is a number
void keys.list({ limit: { nonsense: true } });
// @ts-expect-error a limit is a number, also that of records
void records.list({ limit: true });
`;
