import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { chatFrames, cut, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const body = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
const frames = chatFrames(['one']);
const [opening = '', text = '', finish = '', usage = '', done = ''] = frames;

let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
beforeEach(async () => {
  clock = createFakeClock();
  upstream = await startUpstream();
  const timeouts = { idle: '60s', total: '90s' };
  gateway = await startGateway({ upstreamUrl: upstream.url, clock, timeouts });
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

interface Client {
  readonly answer: LiveAnswer;
  readonly leave: () => void;
}

/** The values of a metric, by one of its labels. */
async function countersOf(metric: string, label: string): Promise<Record<string, number>> {
  const exposed = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const lines = exposed.matchAll(new RegExp(`^${metric}\\{.*${label}="(\\w+)".*\\} (\\d+)$`, 'gm'));
  return Object.fromEntries([...lines].map(([, value, count]) => [value, Number(count)]));
}

describe('a stream is counted once, by its ending', () => {
  const sendAll =
    (...parts: string[]) =>
    (response: ServerResponse) =>
      void sendStream(response, parts).end();
  const sendAndWait =
    (...parts: string[]) =>
    (response: ServerResponse) =>
      void sendStream(response, parts);
  const nothing = (): void => {};

  test.each<[string, (response: ServerResponse) => void, (client: Client) => unknown]>([
    ['completed', sendAll(...frames), nothing],
    ['incomplete', sendAll(...chatFrames(['one'], 'length')), nothing],
    ['upstream_failed', sendAll(opening, text, 'data: {"error":{"message":"x"}}\n\n'), nothing],
    [
      'upstream_truncated',
      (response) => sendStream(response, []).write(text, () => cut(response, 'rst')),
      nothing,
    ],
    ['idle_timeout', sendAndWait(opening, text), () => clock.advance(60_000)],
    [
      'total_timeout',
      (response) => {
        sendStream(response, [opening, text]);
        clock.schedule(45_000, () => response.write(text));
      },
      async ({ answer }) => {
        clock.advance(45_000);
        await eventually('more text has arrived', () => answer.text.split('one').length === 3);
        clock.advance(45_000);
      },
    ],
    ['client_closed', sendAndWait(opening, text), ({ leave }) => leave()],
  ])('%s', async (ending, script, then) => {
    upstream.play(script);
    const leaving = new AbortController();
    const answer = readLive(gateway.post('/v1/chat/completions', body, { signal: leaving.signal }));
    await eventually('text has arrived', () => answer.text.includes('one'));
    await then({ answer, leave: () => leaving.abort() });
    await eventually(
      'it is counted',
      async () => (await countersOf('textgate_stream_endings_total', 'ending'))[ending] === 1,
    );
    expect(await countersOf('textgate_stream_endings_total', 'ending')).toEqual({ [ending]: 1 });
    expect(await countersOf('textgate_streams_open', 'protocol')).toEqual({ chat: 0 });
  });
});

describe('a violation of the protocol by an upstream is counted by kind, while its answer is served', () => {
  const eventStream = 'text/event-stream';
  test.each<[string, string, string, number]>([
    ['missing_done', eventStream, opening + text + finish + usage, 200],
    ['missing_finish', eventStream, opening + text + usage + done, 200],
    ['missing_usage', eventStream, opening + text + finish + done, 200],
    ['bad_json', eventStream, `${opening}${text}data: {"choices\n\n`, 200],
    ['duplicate_terminal', eventStream, frames.join('') + text, 200],
    ['oversized_event', eventStream, `data: ${'x'.repeat(1_100_000)}\n\n`, 502],
    ['wrong_content_type', 'text/html', '<html>', 502],
  ])('%s', async (kind, contentType, bytes, status) => {
    upstream.play((response) => void response.writeHead(200, { 'content-type': contentType }).end(bytes));
    const answer = readLive(gateway.post('/v1/chat/completions', body));
    await answer.ended;
    expect(answer.status).toBe(status);
    expect(await countersOf('textgate_upstream_protocol_violations_total', 'kind')).toEqual({ [kind]: 1 });
  });

  test('a correct answer counts as no violation', async () => {
    upstream.play((response) => void sendStream(response, frames).end());
    await readLive(gateway.post('/v1/chat/completions', body)).ended;
    expect(await countersOf('textgate_upstream_protocol_violations_total', 'kind')).toEqual({});
  });
});
