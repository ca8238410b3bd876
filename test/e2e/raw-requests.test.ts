import { expect, test } from 'vitest';
import { rawTables, rawTimeouts, runCases } from '../scorecard/raw/run-cases.ts';
import { sayTexts, sendJson } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';

const { upstream, gateway } = await openStage({
  limits: { concurrency: 1_000 },
  server: { timeouts: rawTimeouts },
  passthrough: [{ path: '/tokenize', upstream: 'local' }],
});
upstream.play((response, request) =>
  request.path.startsWith('/tokenize') ? sendJson(response, 200, '{}') : sayTexts(['x'])(response, request),
);
const tables = rawTables(gateway);

test('there are a thousand cases and more', () => {
  expect(tables.reduce((sum, { cases }) => sum + cases.length, 0)).toBeGreaterThan(1_000);
});

test.each(tables)('$title', async ({ cases }) => {
  expect(await runCases(cases, upstream.seen)).toEqual([]);
});

test('both listeners answer after all of these', async () => {
  expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(401);
  expect((await fetch(`${gateway.adminUrl}/healthz`)).status).toBe(200);
});
