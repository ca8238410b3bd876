import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readAnswer, readStream } from '../support/client-answer.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sayTexts, sendJson, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

/** Where packages have nginx. */
const program = '/usr/sbin/nginx';

/** As a CDN does: it asks for gzip itself, whatever its client asks for, and passes on what it gets. */
const configOf = (port: number, innerPort: number, upstream: string): string => `
pid nginx.pid;
${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http {
  access_log off;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `  ${name}_temp_path ${name};`).join('\n')}
  proxy_http_version 1.1;
  proxy_buffering off;
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://127.0.0.1:${innerPort}; proxy_set_header Accept-Encoding gzip; }
  }
  server {
    listen 127.0.0.1:${innerPort};
    gzip on; gzip_proxied any; gzip_types *; gzip_min_length 1;
    location / { proxy_pass ${upstream}; }
  }
}
`;

test.skipIf(!existsSync(program))(
  'behind nginx that compresses, answers, errors and lists of models are read, and no text waits for the next one (needs the package of Debian)',
  async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const folder = makeTemporaryFolder();
    const [port, innerPort] = [await freePort(), await freePort()];
    writeFileSync(join(folder, 'nginx.conf'), configOf(port, innerPort, new URL(upstream.url).origin));
    const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', 'daemon off; master_process off;'];
    const child = spawn(program, args, { stdio: 'ignore' });
    const ended = once(child, 'exit');
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    const url = `http://127.0.0.1:${port}/v1`;
    upstream.play((response) => sendJson(response, 200, '{"object":"list","data":[{"id":"small"}]}'));
    await eventually('nginx compresses', async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
      const answer = await fetch(`${url}/models`).catch(() => null);
      return answer?.headers.get('content-encoding') === 'gzip';
    });

    const gateway = await startGateway({ upstreamUrl: url, discover: true });
    onTestFinished(() => gateway.close());
    await eventually('the model is offered', async () => {
      const headers = { authorization: `Bearer ${gateway.key}` };
      return (await (await fetch(`${gateway.url}/v1/models`, { headers })).text()).includes('"small"');
    });
    upstream.play(sayTexts(['Hello', ' there']));
    for (const protocol of ['chat', 'responses'] as const)
      for (const stream of [false, true])
        expect(await readAnswer(gateway, protocol, stream)).toMatchObject({
          ending: 'stop',
          text: 'Hello there',
          usage: [11, 7],
        });

    upstream.play(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const [role = '', one = '', two = '', ...rest] = chatFrames(['one ', 'two']);
      response.write(role + one);
      await eventually('the client has the first text', () => readStream('chat', live.text).text === 'one ');
      response.end(two + rest.join(''));
    });
    const messages = [{ role: 'user', content: 'x' }];
    const live = readLive(gateway.post('/v1/chat/completions', { model: 'small', stream: true, messages }));
    await live.ended;
    expect(readStream('chat', live.text)).toMatchObject({ ending: 'stop', text: 'one two' });

    upstream.play((response) => sendJson(response, 400, '{"error":{"message":"top_p is out of range"}}'));
    const refused = await gateway.post('/v1/chat/completions', { model: 'small', messages });
    expect(await refused.json()).toMatchObject({ error: { upstream: { message: 'top_p is out of range' } } });
  },
  30_000,
);
