import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { askNumber } from '../../chaos/numbered-client.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { chatFrames, sayTexts } from '../../support/scripted-upstream.ts';
import { forEachOf } from '../for-each-of.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

const reuses = 1_000;
const breaks = 10_000;
const atATime = 8;
const texts = ['one ', 'two ', 'three'];

/** How a provider treats what it gets: it closes each kept connection as it is used again, or breaks off within its text. */
type Manner = 'closes kept connections' | 'breaks off';

export const section: Section = {
  name: 'reuse',
  title: 'Kept connections that close, and answers that break off',
  about:
    'An upstream closes every kept connection as it is used again: no client may notice. Then it breaks off each answer at a ' +
    'moment by chance: one whose text has begun must end with a failure, and its upstream be called once.',
  async run({ seed, scale, log }) {
    const provider = await startProvider(seed);
    const subject = await startSubject({ name: 'reuse', upstreamUrl: provider.url });
    const { served, key } = subject;
    const faults: string[] = [];
    const ask = async (number: number): Promise<number> =>
      askNumber(served.url, key, number % 2 === 0, new Map());

    const tried = Math.ceil(reuses * scale);
    await forEachOf(Array.from({ length: tried }), atATime, async (_, index) => {
      const status = await ask(index).catch(String);
      if (status !== 200) faults.push(`call ${index} ended with ${status} as its connection closed`);
    });
    const { closed } = provider;
    if (closed === 0) faults.push('no connection was used again');
    log(`${tried} calls, ${closed} connections were closed as they were used again`);

    provider.behave('breaks off');
    let begun = 0;
    const broken = Math.ceil(breaks * scale);
    await forEachOf(Array.from({ length: broken }), atATime, async (_, index) => {
      const before = `break ${index}`;
      const { status, text } = await stream(served.url, key, before);
      const calls = provider.calls.get(before) ?? 0;
      if (text.includes('[DONE]')) faults.push(`answer ${index} broke off, and was shown whole`);
      if (!text.includes(texts[0] ?? '')) return;
      begun++;
      if (calls !== 1) faults.push(`answer ${index} (${status}) had begun, and was asked ${calls} times`);
    });
    if (begun === 0) faults.push('no text had begun');
    faults.push(...(await subject.finish()));
    provider.close();
    return {
      cases: tried + broken,
      facts: [
        ['calls of an upstream that closes kept connections', tried],
        ['connections that it closed as they were used again', closed],
        ['answers that broke off', broken],
        ['of them after their first text, each called once', begun],
      ],
      faults,
    };
  },
};

/** Such a provider on a free loopback port. */
async function startProvider(seed: number) {
  const uses = new WeakMap<Socket, number>();
  const calls = new Map<string, number>();
  let manner: Manner = 'closes kept connections';
  let closed = 0;
  const reuse = (response: ServerResponse, body: string): void => {
    const socket = response.socket as Socket;
    uses.set(socket, (uses.get(socket) ?? 0) + 1);
    if (uses.get(socket) === 1) return void sayTexts(texts)(response, { body } as never);
    closed++;
    socket.destroy();
  };
  const breakOff = (response: ServerResponse, body: string): void => {
    const [question = '', number = ''] = /break (\d+)/.exec(body) ?? [];
    calls.set(question, (calls.get(question) ?? 0) + 1);
    const whole = chatFrames(texts).slice(0, -2).join('');
    const cut = Math.floor(seededNumbers(seed + Number(number))() * whole.length);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(whole.slice(0, cut), () => response.destroy());
  };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => (manner === 'breaks off' ? breakOff : reuse)(response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    calls,
    get closed() {
      return closed;
    },
    behave: (next: Manner) => void (manner = next),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What a client gets of a stream, as far as it arrives. */
async function stream(url: string, key: string, content: string) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content }] }),
  });
  let text = '';
  try {
    for await (const part of response.body ?? []) text += Buffer.from(part).toString();
  } catch {
    // A broken connection is a way to show a failure.
  }
  return { status: response.status, text };
}
