import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sendToParent } from './send-to-parent.ts';

/** An upstream in a process of its own: answers three words with their usage, whole or streamed, without delay. */

const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
const words = ['one ', 'two ', 'three'];
const frames = [
  ...words.map((content) => ({ choices: [{ index: 0, delta: { content } }] })),
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage },
];
const stream = `${frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')}data: [DONE]\n\n`;
const whole = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: words.join('') }, finish_reason: 'stop' }],
  usage,
});

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => (body += text));
  request.on('end', () => {
    const isStream = body.includes('"stream":true');
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    response.end(isStream ? stream : whole);
  });
});
server.listen(0, '127.0.0.1', () => sendToParent((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit());
