import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createLog } from '../../src/telemetry/log/logger.ts';
import type { LogLevel } from '../../src/telemetry/log/logger.ts';
import { refuse } from '../../src/shared/errors.ts';
import { summary } from '../support/exchange-summary.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';
import { plainAttempt } from '../support/stored-rows.ts';

const run = promisify(execFile);

function written(level: LogLevel, write: (log: ReturnType<typeof createLog>) => void) {
  const lines: string[] = [];
  write(createLog(level, createFakeClock(), { write: (line) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const attempt = { ...plainAttempt, violations: [] };

describe('the line of a request', () => {
  test('has exactly these fields: ids, model, upstream, outcome, tokens, charge and times', () => {
    const usage = {
      inputTokens: 11,
      cachedInputTokens: 3,
      cacheWriteTokens: 0,
      outputTokens: 7,
      reasoningTokens: 0,
      totalTokens: 18,
    };
    const ended = { ...summary, usage, attempts: [attempt], chargeNanos: 1_250_000, traceId: 'a'.repeat(32) };
    const [line, ...more] = written('info', (log) => log.exchangeEnded(ended));
    expect(more).toEqual([]);
    expect(line).toEqual({
      level: 30,
      time: expect.any(Number),
      msg: 'request',
      requestId: 'req_1',
      keyId: 'key_1',
      keyName: 'bob',
      protocol: 'chat',
      mode: 'stream',
      model: 'small',
      requestedModel: 'small',
      upstream: 'local',
      outcome: 'completed',
      status: 200,
      code: null,
      cause: null,
      upstreamError: null,
      inputTokens: 11,
      cachedInputTokens: 3,
      cacheWriteTokens: 0,
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

  test.each([null, 3])('is written as pino would write its fields, byte for byte, by worker %s', (worker) => {
    let [line, expected] = ['', ''];
    const writer = { write: (text: string) => void (line = text) };
    const log = createLog('info', createFakeClock(), writer, 'json', worker);
    const reference = pino(
      { base: worker === null ? null : { worker } },
      { write: (text) => void (expected = text) },
    );
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.double(),
        fc.option(fc.string()),
        (name, number, traceId) => {
          const upstreamError = { status: 400, code: name, message: '\u2028"\\ \ud800' };
          log.exchangeEnded({
            ...summary,
            keyName: name,
            totalMs: number,
            traceId,
            upstreamError,
            attempts: [attempt],
          });
          const {
            level: _level,
            time,
            msg,
            worker: _worker,
            ...fields
          } = JSON.parse(line) as Record<string, unknown>;
          reference.info(fields, String(msg));
          expect(line).toBe(expected.replace(/"time":\d+/, `"time":${String(time)}`));
        },
      ),
      propertyRun(100),
    );
  });

  test('has no trace id when the request is not traced', () => {
    expect(written('info', (log) => log.exchangeEnded(summary))[0]).not.toHaveProperty('traceId');
  });

  test('names the upstreams whose queues refused the request, none of which was called', () => {
    const refused = (upstreams: readonly string[]) =>
      ({
        upstream: null,
        limitedModel: null,
        firstWaitMs: 0,
        waitMs: 0,
        refusal: { kind: 'full', upstreams, models: [] },
      }) as const;
    const ended = { ...summary, upstream: null, outcome: 'refused' as const };
    const [line] = written('info', (log) =>
      log.exchangeEnded({ ...ended, permits: refused(['local', 'spare']) }),
    );
    expect(line).toMatchObject({ upstream: null, refusedBy: ['local', 'spare'] });
    const permitted = { ...refused([]), refusal: null };
    expect(
      written('info', (log) => log.exchangeEnded({ ...summary, permits: permitted }))[0],
    ).not.toHaveProperty('refusedBy');
  });

  test('has the code of the refusal that the client got, without its message', () => {
    const refusal = refuse('model_not_found', 'canary');
    const refused = { ...summary, outcome: 'refused' as const, refusal };
    const [line] = written('info', (log) => log.exchangeEnded(refused));
    expect(line).toMatchObject({ code: 'model_not_found' });
    expect(JSON.stringify(line)).not.toContain('canary');
    const left = { ...summary, outcome: 'client_closed' as const, refusal };
    expect(written('info', (log) => log.exchangeEnded(left))[0]).toMatchObject({ code: null });
  });

  test('is followed by an error line when an upstream rejected the API key', () => {
    const unknown = { ...attempt, result: 'auth' as const, cause: 'status 401' };
    const lines = written('warn', (log) => log.exchangeEnded({ ...summary, attempts: [unknown] }));
    expect(lines).toMatchObject([{ level: 50, upstream: 'local', cause: 'status 401' }]);
  });
});

describe('at level debug', () => {
  test('every attempt and every request without a valid key has a line of its own', () => {
    const keyless = { ...summary, keyId: null, attempts: [] };
    const lines = written('debug', (log) => {
      log.exchangeEnded({ ...summary, attempts: [attempt] });
      log.exchangeEnded(keyless);
    });
    expect(lines).toMatchObject([
      { level: 30, msg: 'request', keyId: 'key_1' },
      { level: 20, msg: 'upstream attempt', requestId: 'req_1', ...attempt },
      { level: 30, msg: 'request', keyId: null },
    ]);
  });
});

describe('a fault', () => {
  test('is logged with its reason, and not at all at level silent', () => {
    const fault = (log: ReturnType<typeof createLog>) => log.fault('it broke', new Error('why'));
    expect(written('warn', fault)).toMatchObject([{ level: 50, msg: 'it broke', reason: 'why' }]);
    expect(written('silent', fault)).toEqual([]);
  });
});

describe('requests without a valid key', () => {
  const keyless = {
    ...summary,
    keyId: null,
    outcome: 'refused' as const,
    refusal: refuse('invalid_api_key', 'x'),
  };
  const lines: string[] = [];
  const setUp = () => {
    lines.length = 0;
    const clock = createFakeClock();
    return { clock, log: createLog('info', clock, { write: (line) => void lines.push(line) }) };
  };

  test('are summed up in one line every ten seconds, with counts by code', () => {
    const { clock, log } = setUp();
    for (let count = 0; count < 1_000; count++) log.exchangeEnded(keyless);
    log.exchangeEnded({ ...keyless, refusal: refuse('duplicate_header', 'x') });
    log.exchangeEnded({ ...keyless, outcome: 'client_closed' });
    clock.advance(9_999);
    expect(lines).toEqual([]);
    clock.advance(1);
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      {
        level: 30,
        msg: 'requests without a valid key',
        count: 1_002,
        codes: { invalid_api_key: 1_000, duplicate_header: 1, client_closed: 1 },
      },
    ]);
    clock.advance(20_000);
    expect(lines).toHaveLength(1);
    log.exchangeEnded(keyless);
    clock.advance(10_000);
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({ count: 1 });
  });

  test('do not suppress the line of any request with a key, refused ones included', () => {
    const { log } = setUp();
    log.exchangeEnded({ ...keyless, keyId: 'key_1', refusal: refuse('rate_limit_exceeded', 'x') });
    expect(lines).toHaveLength(1);
  });

  test('are written when the log is closed at the latest, and leave no timer behind', async () => {
    const { clock, log } = setUp();
    log.exchangeEnded(keyless);
    await log.close();
    expect(lines).toHaveLength(1);
    expect(clock.scheduled).toBe(0);
  });
});

test('a destination that throws loses its lines, which are counted, and fails nothing else', () => {
  const log = createLog('info', createFakeClock(), {
    write() {
      throw new Error('the disk of the app is full');
    },
  });
  log.exchangeEnded(summary);
  log.fault('it broke', new Error('why'));
  expect(log.droppedLines).toBe(2);
});

describe('an uncaught error', () => {
  test('is logged as one fatal line with its stack frames, without text that its message quotes', () => {
    const odd = Object.assign(new TypeError(`it's "can't" \n    at canary (canary.ts:1:1)\n'canary'`), {
      code: 'E_ODD',
    });
    const errors = [
      failing(() => JSON.parse('canary {')),
      failing(() => Buffer.from(7 as unknown as string, 'canary' as BufferEncoding)),
      odd,
    ];
    const crashLines = (error: unknown) => written('warn', (log) => log.crash(error));
    for (const error of [...errors, 'canary', { message: 'canary' }, null]) {
      const lines = crashLines(error);
      expect(lines).toMatchObject([{ level: 60, msg: 'uncaught error: shutting down' }]);
      expect(JSON.stringify(lines)).not.toContain('canary');
    }
    for (const error of errors)
      expect(crashLines(error)[0]?.['stack']).toContainEqual(expect.stringContaining('logger.test.ts'));
    expect(crashLines(odd)[0]).toMatchObject({ error: 'TypeError', code: 'E_ODD', reason: "it's …" });
  });
});

function failing(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe('standard output', () => {
  const logger = pathToFileURL(
    join(import.meta.dirname, '..', '..', 'src', 'telemetry', 'log', 'logger.ts'),
  ).href;
  const print = async (isTerminal: boolean, format?: 'json' | 'text'): Promise<string> => {
    const script = `process.stdout.isTTY = ${isTerminal};
      import('${logger}').then(({ createLog }) => createLog('info', { now: Date.now }, undefined, ${JSON.stringify(format)}).fault('it broke', new Error('why')));`;
    return (await run(process.execPath, ['-e', script])).stdout;
  };

  test('gets the format that was set, whatever it is', async () => {
    const shown = await print(false, 'text');
    expect(shown).toMatch(/^\d\d:\d\d:\d\d ERROR it broke: why\n$/);
    expect(JSON.parse(await print(true, 'json'))).toMatchObject({ msg: 'it broke' });
  });

  test('gets JSON lines', async () => {
    expect(JSON.parse(await print(false))).toMatchObject({ msg: 'it broke', reason: 'why' });
  });

  test('gets formatted lines when it is a terminal', async () => {
    const shown = await print(true);
    expect(shown).toMatch(/ERROR.*it broke/);
    expect(shown).not.toContain('{"level"');
  });
});
