import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createLog } from '../../src/telemetry/logger.ts';
import { refuse } from '../../src/shared/errors.ts';
import { summary } from '../support/exchange-summary.ts';

const run = promisify(execFile);

function written(level: 'info' | 'warn' | 'silent', write: (log: ReturnType<typeof createLog>) => void) {
  const lines: string[] = [];
  write(createLog(level, { write: (line) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const attempt = {
  upstream: 'local',
  model: 'tiny',
  result: 'ok' as const,
  durationMs: 2,
  cause: null,
  usage: null,
  violations: [],
};

describe('the line of a request', () => {
  test('says who asked what of whom, how it went, what it cost and how long it took, and nothing else', () => {
    const usage = {
      inputTokens: 11,
      cachedInputTokens: 3,
      outputTokens: 7,
      reasoningTokens: 0,
      totalTokens: 18,
    };
    const told = { ...summary, usage, attempts: [attempt], chargeNanos: 1_250_000, traceId: 'a'.repeat(32) };
    const [line, ...more] = written('info', (log) => log.exchangeEnded(told));
    expect(more).toEqual([]);
    expect(line).toEqual({
      level: 30,
      time: expect.any(Number),
      msg: 'request',
      requestId: 'req_1',
      keyId: 'key_1',
      protocol: 'chat',
      mode: 'stream',
      model: 'small',
      upstream: 'local',
      outcome: 'completed',
      status: 200,
      code: null,
      cause: null,
      inputTokens: 11,
      cachedInputTokens: 3,
      outputTokens: 7,
      charge: '0.00125',
      stripped: [],
      attempts: [attempt],
      queuedMs: 1,
      firstTextMs: 2,
      handoverMs: 1,
      totalMs: 3,
      traceId: 'a'.repeat(32),
    });
  });

  test('has no trace when there is none', () => {
    expect(written('info', (log) => log.exchangeEnded(summary))[0]).not.toHaveProperty('traceId');
  });

  test('has the code that the client got, but not its words', () => {
    const refusal = refuse('model_not_found', 'canary');
    const refused = { ...summary, outcome: 'refused' as const, refusal };
    const [line] = written('info', (log) => log.exchangeEnded(refused));
    expect(line).toMatchObject({ code: 'model_not_found' });
    expect(JSON.stringify(line)).not.toContain('canary');
    const left = { ...summary, outcome: 'client_closed' as const, refusal };
    expect(written('info', (log) => log.exchangeEnded(left))[0]).toMatchObject({ code: null });
  });

  test('is followed by a word about an upstream that does not know us', () => {
    const unknown = { ...attempt, result: 'auth' as const, cause: 'status 401' };
    const lines = written('warn', (log) => log.exchangeEnded({ ...summary, attempts: [unknown] }));
    expect(lines).toMatchObject([{ level: 50, upstream: 'local', cause: 'status 401' }]);
  });
});

describe('a fault', () => {
  test('has its reason in words; nothing is written in silence', () => {
    const fault = (log: ReturnType<typeof createLog>) => log.fault('it broke', new Error('why'));
    expect(written('warn', fault)).toMatchObject([{ level: 50, msg: 'it broke', reason: 'why' }]);
    expect(written('silent', fault)).toEqual([]);
  });
});

describe('standard output', () => {
  const logger = pathToFileURL(join(import.meta.dirname, '..', '..', 'src', 'telemetry', 'logger.ts')).href;
  const print = async (isTerminal: boolean): Promise<string> => {
    const script = `process.stdout.isTTY = ${isTerminal};
      import('${logger}').then(({ createLog }) => createLog('info').fault('it broke', new Error('why')));`;
    return (await run(process.execPath, ['-e', script])).stdout;
  };

  test('gets JSON', async () => {
    expect(JSON.parse(await print(false))).toMatchObject({ msg: 'it broke', reason: 'why' });
  });

  test('gets lines to read when it is a terminal', async () => {
    const shown = await print(true);
    expect(shown).toMatch(/ERROR.*it broke/);
    expect(shown).not.toContain('{"level"');
  });
});
