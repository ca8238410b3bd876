import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { DrivenRequest, PipelineHarness } from '../support/pipeline-harness.ts';
import { chatFrames } from '../support/scripted-upstream.ts';

const price = { input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 };
const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'hello' }] };
const [first = '', second = '', ...rest] = chatFrames(['one ', 'two']);
/** What the frames' own usage costs: 11 tokens in, 7 out. */
const reported = { usage_source: 'upstream', charge: 11 * 1_000 + 7 * 2_000 };
/** What our count of the question and of the text that went out costs: a token a character here. */
const counted = { usage_source: 'counted', charge: ('hello'.length + 4) * 1_000 + 4 * 2_000 };

let pipeline: PipelineHarness;
let keyId: string;
beforeEach(async () => {
  pipeline = await openPipeline(price, 100);
  keyId = await pipeline.addKey(1_000_000_000);
});
afterEach(() => pipeline.close());

/** A request whose client leaves when it has the first words. */
async function leaveInTheMiddle(): Promise<DrivenRequest> {
  const request = await pipeline.start(keyId, body);
  request.call?.give(first + second);
  await pipeline.quiet();
  request.leave();
  await pipeline.quiet();
  return request;
}

async function recordOf({ id }: DrivenRequest): Promise<unknown> {
  const [row] = await pipeline.engine.run([
    { sql: 'SELECT outcome, usage_source, charge FROM records WHERE request_id = ?', values: [id] },
  ]);
  return row?.[0];
}

describe('a client that leaves in the middle of an answer', () => {
  test('with estimate: stops the upstream at once and pays for what it was sent', async () => {
    const request = await leaveInTheMiddle();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...counted });
  });

  test('with free: pays nothing', async () => {
    pipeline.onDisconnect = 'free';
    const request = await leaveInTheMiddle();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', charge: 0 });
  });

  test('with drain: the answer is read on for its usage, which is what it pays', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    expect(await recordOf(request)).toMatchObject({ outcome: null });
    request.call?.give(rest.join(''));
    request.call?.give(null);
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...reported });
    expect(request.sent.text).not.toContain('two');
  });

  test('with drain: an answer that tells no usage within 30 s is stopped, and what was sent is counted', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    pipeline.clock.advance(29_999);
    await pipeline.quiet();
    expect(await recordOf(request)).toMatchObject({ outcome: null });
    pipeline.clock.advance(1);
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...counted });
  });

  test('with drain: an answer that breaks off afterwards is counted as far as it was sent', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    request.call?.give(rest[0] ?? '');
    request.call?.give({ fault: 'broken' });
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', ...counted });
  });

  test('with drain: before its first words it pays nothing, and the upstream is stopped at once', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await pipeline.start(keyId, body);
    request.leave();
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'client_closed', charge: 0 });
  });

  test('with drain: a cancel ends the reading, too', async () => {
    pipeline.onDisconnect = 'drain';
    const request = await leaveInTheMiddle();
    expect(pipeline.ports.inFlight.cancel(request.id)).toBe(true);
    await request.done;
    expect(await recordOf(request)).toMatchObject({ outcome: 'cancelled', ...counted });
  });
});
