import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { missingProxies, startProxy } from '../support/proxy-process.ts';
import type { ProxyName, ProxyProcess } from '../support/proxy-process.ts';
import { chatFrames, sayTexts, sendStream } from '../support/scripted-upstream.ts';
import { openStage } from '../support/stage.ts';
import { openCertificate } from '../support/tls-stage.ts';

const messages = [{ role: 'user' as const, content: 'Say hello' }];
const streaming = { model: 'small', messages, stream: true } as const;

/** How long a proxy may take to start on a busy machine, in milliseconds. */
const startMs = 60_000;

const certificate = openCertificate();
const socket = join(certificate.folder, 'textgate.sock');

/** The two gateways of the documentation: one with a base path, and one whose path the proxy removes, also at a socket. */
const kept = await openStage({ server: { basePath: '/llm' } });
const stripped = await openStage();
const atSocket = await openStage({ server: { socket } });

describe.each(['nginx', 'caddy', 'haproxy'] as const)('behind %s', (name) => {
  describe.skipIf(missingProxies.has(name))(
    `(needs the package ${name}), with the config of the docs,`,
    () => {
      let proxy: ProxyProcess;
      beforeAll(async () => {
        const folder = join(certificate.folder, name);
        mkdirSync(folder);
        const ports = { '8080': new URL(kept.gateway.url).port, '8090': new URL(stripped.gateway.url).port };
        proxy = await startProxy(name, { folder, certificate, ports, socket });
      }, startMs);
      afterAll(() => proxy?.close());

      describe.each([
        ['a base path that it keeps', '/llm', () => kept],
        ['a path that it removes', '/text', () => strippedBehind(name)],
      ] as const)('%s:', (_title, path, stage) => {
        const open = () => {
          const { upstream, gateway } = stage();
          const client = new OpenAI({
            baseURL: `${proxy.url}${path}/v1`,
            apiKey: gateway.key,
            maxRetries: 0,
          });
          return { upstream, client };
        };

        test('the official client gets whole answers and lists of models', async () => {
          const { upstream, client } = open();
          upstream.play(sayTexts(['one ', 'two']));
          const whole = await client.chat.completions.create({ model: 'small', messages });
          expect(whole.choices[0]?.message.content).toBe('one two');
          const response = await client.responses.create({ model: 'small', input: 'Say hello' });
          expect(response.output_text).toBe('one two');
          expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['small']);
        });

        test('each frame of a stream arrives before the next one is sent', async () => {
          const { upstream, client } = open();
          const texts = ['one ', 'two ', 'three'];
          const frames = chatFrames(texts);
          const seen = texts.map(() => Promise.withResolvers<void>());
          upstream.play(async (response) => {
            sendStream(response, frames.slice(0, 1));
            for (const [index, { promise }] of seen.entries()) {
              response.write(frames[index + 1]);
              await promise;
            }
            response.end(frames.slice(texts.length + 1).join(''));
          });
          const got: string[] = [];
          for await (const { choices } of await client.chat.completions.create(streaming)) {
            const text = choices[0]?.delta.content ?? '';
            if (text === '') continue;
            seen[got.length]?.resolve();
            got.push(text);
          }
          expect(got).toEqual(texts);
        });

        test('a client that leaves in the middle of a stream stops its upstream', async () => {
          const { upstream, client } = open();
          const frames = chatFrames(['one ', 'two']);
          upstream.play((response) => void sendStream(response, frames.slice(0, 2)));
          const before = upstream.aborted;
          const stream = await client.chat.completions.create(streaming);
          for await (const { choices } of stream) if (choices[0]?.delta.content === 'one ') break;
          await eventually('the upstream is stopped', () => upstream.aborted === before + 1);
        });

        test('a stream whose upstream breaks off is an error for the client', async () => {
          const { upstream, client } = open();
          const frames = chatFrames(['one ', 'two']);
          const isSeen = Promise.withResolvers<void>();
          upstream.play((response) => {
            sendStream(response, frames.slice(0, 2));
            void isSeen.promise.then(() => response.destroy());
          });
          const got: string[] = [];
          const read = async (): Promise<void> => {
            for await (const { choices } of await client.chat.completions.create(streaming)) {
              got.push(choices[0]?.delta.content ?? '');
              if (got.at(-1) === 'one ') isSeen.resolve();
            }
          };
          await expect(read()).rejects.toThrow('before the answer was complete');
          expect(got.join('')).toBe('one ');
        });

        test('a wrong path is refused with the paths of the gateway', async () => {
          const answer = await fetch(`${proxy.url}${path}/v1/chat/completion`);
          expect(answer.status).toBe(404);
          expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
          const base = path === '/llm' ? path : '';
          expect(await answer.text()).toContain(`Did you mean ${base}/v1/chat/completions?`);
        });
      });
    },
  );
});

function strippedBehind(name: ProxyName): typeof stripped {
  return name === 'nginx' ? atSocket : stripped;
}
