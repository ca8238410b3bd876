import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusalHeaders } from '../../../src/http/answers/answer-headers.ts';
import { writeRefusal } from '../../../src/protocol/answer-writer.ts';
import { refuse, statusOf } from '../../../src/shared/errors.ts';
import type { ErrorCode } from '../../../src/shared/errors.ts';
import { errorCodes, writeErrorTable } from '../../support/error-table.ts';
import { compareSection } from '../../support/generated-section.ts';

/** How often each path was asked for. */
const counts = new Map<string, number>();

/** Refuses every request by the code that its path begins with, as the gateway writes it. */
const server = createServer((request, response) => {
  const path = request.url ?? '';
  counts.set(path, (counts.get(path) ?? 0) + 1);
  const code = path.split('/')[2] as ErrorCode;
  // A short pause, so that a library that waits before its next attempt waits for a millisecond.
  const refusal = refuse(code, 'refused', { retryAfterMs: 1 });
  response.writeHead(statusOf(code), { 'content-type': 'application/json', ...refusalHeaders(refusal) });
  request.resume().on('end', () => response.end(writeRefusal(refusal)));
});
let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const clients: Readonly<Record<string, (baseURL: string) => Promise<unknown>>> = {
  openai: (baseURL) =>
    new OpenAI({ baseURL, apiKey: 'x', maxRetries: 1 }).chat.completions.create({
      model: 'small',
      messages: [{ role: 'user', content: 'x' }],
    }),
  ai: (baseURL) =>
    generateText({
      model: createOpenAI({ baseURL, apiKey: 'x' }).chat('small'),
      prompt: 'x',
      maxRetries: 1,
    }),
};

test('the table of errors says which client libraries send a refused request again', async () => {
  const retriedBy = new Map<ErrorCode, string[]>(errorCodes.map((code) => [code, []]));
  for (const [name, ask] of Object.entries(clients))
    await Promise.all(
      errorCodes.map(async (code) => {
        await expect(ask(`${origin}/${name}/${code}`)).rejects.toThrow('refused');
        const count = counts.get(`/${name}/${code}/chat/completions`);
        expect(count).toBeGreaterThan(0);
        if (count === 2) retriedBy.get(code)?.push(name);
      }),
    );
  expect(retriedBy.get('overloaded')).toContain('openai');
  expect(retriedBy.get('invalid_json')).toEqual([]);
  const { wanted, found } = compareSection('errors by code', writeErrorTable(retriedBy));
  expect(found).toBe(wanted);
});
