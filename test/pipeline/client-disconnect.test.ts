import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { UpstreamFault } from '../../src/domain/ports/upstreams.ts';
import type { Ports } from '../../src/pipeline/ports.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { DrivenRequest, PipelineHarness } from '../support/pipeline-harness.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { modelPrice } from '../support/model-price.ts';
import { bodyOf } from '../support/body-of.ts';

const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const [first = '', second = '', ...rest] = chatFrames(['one ', 'two']);
/** The cost of the frames' own usage: 11 tokens in, 7 out. */
const reported = { usage_source: 'upstream', charge: 11 * 1_000 + 7 * 2_000 };
/** The cost of our own count of the input and of the sent text: one token per character here. */
const counted = { usage_source: 'counted', charge: ('hello'.length + 4) * 1_000 + 4 * 2_000 };

let pipeline: PipelineHarness;
let keyId: string;
beforeEach(async () => {
  pipeline = await openPipeline(price, 100);
  keyId = await pipeline.addKey(1_000_000_000);
});
afterEach(() => pipeline.close());

const thinking = (text: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning_content: text } }] })}\n\n`;

/** A request whose client disconnects after the first text. */
async function leaveInTheMiddle(): Promise<DrivenRequest> {
  const request = await pipeline.start(keyId, body);
  request.call?.give(first + second);
  await pipeline.quiet();
  request.leave();
  await pipeline.quiet();
  return request;
}

async function recordOf({ id }: DrivenRequest): Promise<unknown> {
  const rows = await pipeline.engine.run([
    { sql: 'SELECT outcome, usage_source, charge FROM records WHERE request_id = ?', values: [id] },
    { sql: 'SELECT NULL AS outcome FROM open_requests WHERE request_id = ?', values: [id] },
  ]);
  return rows.flat()[0];
}

describe('a client that disconnects while a whole answer is awaited', () => {
  const whole = { ...body, stream: false };
  const question = { usage_source: 'counted', charge: ('hello'.length + 4) * 1_000 };
  const nothing = { usage_source: 'none', charge: 0 };
  type Call = Ports['upstreams']['call'];
  const untilAbort = (signal: AbortSignal) =>
    new Promise<UpstreamFault>((resolve) =>
      signal.addEventListener('abort', () => resolve({ kind: 'fault', fault: 'interrupted' })),
    );
  const answering = (status: number): Call => {
    return async ({ onSent }, signal) => {
      onSent?.();
      return {
        kind: 'answer',
        status,
        contentType: 'application/json',
        retryAfterMs: null,
        ...bodyOf(() => untilAbort(signal)),
        release: () => {},
      };
    };
  };
  let calls: number;
  beforeEach(() => void (calls = 0));

  test.each<[string, Call, object]>([
    ['once the request is sent, pays for the input', answering(200), question],
    ['before the request is sent, pays nothing', async (_call, signal) => untilAbort(signal), nothing],
    ['while the body of a refusal is being read, pays nothing', answering(400), nothing],
    [
      'during the second attempt, after a closed connection, pays nothing',
      async ({ onSent }, signal) => {
        if (++calls > 1) return untilAbort(signal);
        onSent?.();
        return { kind: 'fault', fault: 'stale' };
      },
      nothing,
    ],
  ])('%s', async (_name, call, charged) => {
    const request = await pipeline.start(keyId, whole, 'chat', { upstreams: { call } });
    request.leave();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...charged });
  });
});

describe('a client that disconnects in the middle of an answer', () => {
  test('with estimate stops the upstream at once and pays for the sent text', async () => {
    const request = await leaveInTheMiddle();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...counted });
  });

  test.each(['estimate', 'drain'] as const)(
    'with %s stops the upstream during its thoughts and pays for them',
    async (onDisconnect) => {
      pipeline.onDisconnect = onDisconnect;
      const request = await pipeline.start(keyId, body);
      request.call?.give(thinking('hm, '));
      request.call?.give(thinking('hm'));
      await pipeline.quiet();
      request.leave();
      await request.done;
      const charge = ('hello'.length + 4) * 1_000 + 'hm, hm'.length * 2_000;
      expect(await recordOf(request)).toMatchObject({
        outcome: 'client_closed',
        usage_source: 'counted',
        charge,
      });
      expect(request.sent.text).not.toContain('hm');
    },
  );

  test('with free pays nothing during the thoughts', async () => {
    pipeline.onDisconnect = 'free';
    const request = await pipeline.start(keyId, body);
    request.call?.give(thinking('hm'));
    await pipeline.quiet();
    request.leave();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', charge: 0 });
  });

  test('pays nothing if it stays and the upstream fails during its thoughts', async () => {
    const request = await pipeline.start(keyId, body);
    request.call?.give(thinking('hm'));
    request.call?.give({ kind: 'fault', fault: 'broken' });
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'upstream_truncated', charge: 0 });
  });

  test.each([
    ['estimate', (5 + 4) * 1_000],
    ['drain', (5 + 4) * 1_000],
    ['free', 0],
  ] as const)('of a whole answer pays for the input with %s (%i)', async (onDisconnect, charge) => {
    pipeline.onDisconnect = onDisconnect;
    const request = await pipeline.start(keyId, { ...body, stream: false });
    request.leave();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', charge });
  });

  test('with free pays nothing', async () => {
    pipeline.onDisconnect = 'free';
    const request = await leaveInTheMiddle();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', charge: 0 });
  });

  test('with drain pays the usage for which the answer is read on', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    expect(await recordOf(request)).toMatchObject({ outcome: null });
    request.call?.give(rest.join(''));
    request.call?.give(null);
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...reported });
    expect(request.sent.text).not.toContain('two');
  });

  test('with drain pays for the sent text if no usage arrives within 30 s, and the upstream is stopped', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    pipeline.clock.advance(29_999);
    await pipeline.quiet();
    expect(await recordOf(request)).toMatchObject({ outcome: null });
    pipeline.clock.advance(1);
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...counted });
  });

  test('with drain pays for the sent text if the answer breaks off afterwards', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    request.call?.give(rest[0] ?? '');
    request.call?.give({ kind: 'fault', fault: 'broken' });
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...counted });
  });

  test('with drain pays nothing before the first text, and the upstream is stopped at once', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await pipeline.start(keyId, body);
    request.leave();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', charge: 0 });
  });

  test('with drain can still be cancelled, which ends the reading', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    expect(await pipeline.ports.inFlight.cancel(request.id)).toBe(true);
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'cancelled', ...counted });
  });
});
