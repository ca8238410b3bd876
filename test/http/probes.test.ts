import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { answerProbes } from '../../src/http/listen/public-paths.ts';
import { createRouter } from '../../src/http/router.ts';
import type { RequestHandler } from '../../src/http/router.ts';
import { eventually } from '../support/eventually.ts';

test('probes that come while readiness is checked share one check, and later ones get a new one', async () => {
  let [asked, checks] = [0, 0];
  let check = Promise.withResolvers<boolean>();
  const count: RequestHandler = (_request, _response, next) => {
    asked++;
    next();
  };
  const router = createRouter()
    .use(count)
    .use(
      answerProbes('', () => {
        checks++;
        return check.promise;
      }),
    );
  const server = createServer((request, response) => router(request, response, () => response.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const probe = async (): Promise<number> =>
    (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`)).status;
  const probes = Array.from({ length: 5 }, probe);
  await eventually('all have arrived', () => asked === 5);
  expect(checks).toBe(1);
  check.resolve(true);
  expect(await Promise.all(probes)).toEqual([200, 200, 200, 200, 200]);
  check = Promise.withResolvers();
  check.resolve(false);
  expect(await probe()).toBe(503);
  expect(checks).toBe(2);
});
