import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maxEventChars } from '../../src/protocol/sse.ts';
import { eventually } from '../support/eventually.ts';
import { startAtTerminal, terminalAbsence } from '../support/pseudo-terminal.ts';
import { chatFrames, cut, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { startCommanded } from '../support/commanded-gateway.ts';
import { runCommand } from '../support/run-command.ts';
import type { Finished } from '../support/textgate-process.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { serveHere } from '../support/serve-here.ts';
import { startTextgate } from '../support/textgate-process.ts';

/** A gateway in front of a scripted upstream, and `textgate say` at it. */
async function startScene(script: Script) {
  const upstream = await startUpstream();
  upstream.play(script);
  onTestFinished(() => upstream.close());
  const gateway = await startCommanded({
    config: {
      upstreams: { local: { url: upstream.url } },
      models: {
        small: { routes: [{ upstream: 'local', model: 'tiny' }], price: { input: '1', output: '2' } },
        other: { routes: [{ upstream: 'local', model: 'huge' }], price: { input: '1', output: '2' } },
      },
    },
    keySettings: { balance: '5.00' },
  });
  const environment = { TEXTGATE_URL: gateway.url, TEXTGATE_API_KEY: gateway.key };
  const say = (...args: readonly string[]): Promise<Finished> =>
    runCommand(['say', ...args], '/', environment);
  /** With something on standard input. */
  const pipe = (input: string, ...args: readonly string[]): Promise<Finished> =>
    runCommand(['say', ...args], '/', environment, input);
  const seen = (): { model: string; messages: { role: string; content: string }[] } =>
    JSON.parse(upstream.seen.at(-1)?.body ?? '{}') as ReturnType<typeof seen>;
  return { upstream, gateway, environment, say, pipe, seen };
}

const answer = sayTexts(['Hello ', 'there']);

const breakOff: Script = (response) => {
  sendStream(response, chatFrames(['Hello ']).slice(0, 2));
  cut(response, 'fin');
};

const endAtLength: Script = (response) => void sendStream(response, chatFrames(['Hello'], 'length')).end();

const refuse: Script = (response) => void response.writeHead(400).end('{"error":{"message":"too long"}}');

describe('textgate say', () => {
  test('prints the answer to its question, in both protocols, and nothing else where there is no terminal', async () => {
    const { say, seen } = await startScene(answer);
    for (const protocol of [[], ['--responses']]) {
      expect(await say(...protocol, 'Say', 'hello')).toEqual({
        code: 0,
        stdout: 'Hello there\n',
        stderr: '',
      });
      expect(seen()).toMatchObject({ model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }] });
    }
    await say('--model', 'other', 'x');
    expect(seen().model).toBe('huge');
  });

  test('reads the question from standard input', async () => {
    const { pipe, seen } = await startScene(answer);
    for (const args of [[], ['-']]) {
      expect(await pipe(`from a pipe ${args.length}\n`, ...args)).toMatchObject({
        code: 0,
        stdout: 'Hello there\n',
      });
      expect(seen().messages).toEqual([{ role: 'user', content: `from a pipe ${args.length}` }]);
    }
    expect(await pipe(' \n')).toMatchObject({
      code: 1,
      stderr: 'textgate: no question: standard input is empty\n',
    });
  });

  test('with --frames prints each frame with its time', async () => {
    const { say } = await startScene(answer);
    const chat = (await say('--frames', 'x')).stdout.trimEnd().split('\n');
    expect(chat.length).toBeGreaterThan(4);
    for (const line of chat) expect(line).toMatch(/^ +\d+ ms {2}data: /);
    expect(chat.at(-1)).toMatch(/data: \[DONE\]$/);
    const responses = (await say('--frames', '--responses', 'x')).stdout;
    expect(responses).toMatch(/^ +\d+ ms {2}event: response\.created\n {12}data: \{/);
    expect(responses).toMatch(/ms {2}event: response\.completed\n {12}data: \{.*\n$/);
  });

  test.each<[string, Script, RegExp]>([
    ['a refusal', refuse, /^textgate: 400: .*too long/],
    ['a failure of the provider', (response) => void response.writeHead(500).end('{}'), /^textgate: 502: /],
    ['an answer that breaks off', breakOff, /^textgate: .+/],
    [
      'an incomplete answer',
      endAtLength,
      /^textgate: the answer is incomplete: (length|max_output_tokens)$/m,
    ],
  ])('%s is an error in the words of the gateway', async (_case, script, words) => {
    const { say } = await startScene(script);
    for (const protocol of [[], ['--responses']]) {
      const { code, stderr } = await say(...protocol, 'x');
      expect(code).toBe(1);
      expect(stderr).toMatch(words);
      expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    }
  });

  test.each<[string, Script, RegExp]>([
    [
      'is no stream of events, and does not end',
      (response) => void response.writeHead(200, { 'content-type': 'text/html' }).write('<html>'),
      /^textgate: the answer is no stream of events: this is no gateway\n$/,
    ],
    [
      'has a frame that is too long',
      (response) => void sendStream(response, ['data: ', 'x'.repeat(maxEventChars)]),
      new RegExp(`^textgate: a frame has more than ${maxEventChars} characters\n$`),
    ],
    [
      'breaks off without the end of its body',
      (response) => {
        sendStream(response, chatFrames(['Hello ']).slice(0, 1));
        response.write(': sent\n\n', () => cut(response, 'fin'));
      },
      /^textgate: the answer was cut off: the connection broke\n$/,
    ],
  ])('says so of an answer that %s', async (_case, script, words) => {
    const server = await startUpstream();
    onTestFinished(() => server.close());
    server.play(script);
    const args = ['say', 'x', '--model', 'm', '--url', server.url, '--key', 'any'];
    const { code, stderr } = await runCommand(args);
    expect(code).toBe(1);
    expect(stderr).toMatch(words);
  });

  test('says what is missing: a key, a gateway, a model', async () => {
    const { gateway } = await startScene(answer);
    const run = async (environment: Readonly<Record<string, string>>, ...args: readonly string[]) => {
      const { code, stdout, stderr } = await runCommand(['say', 'x', ...args], '/', environment);
      expect([code, stdout]).toEqual([1, '']);
      return stderr;
    };
    const { key, url } = gateway;
    expect(await run({})).toMatch(/^textgate: no key: set TEXTGATE_API_KEY to one/);
    expect(await run({ TEXTGATE_API_KEY: key, TEXTGATE_URL: 'nowhere' })).toMatch(
      /^textgate: TEXTGATE_URL: expected http/,
    );
    const closed = { TEXTGATE_API_KEY: key, TEXTGATE_URL: 'http://127.0.0.1:1' };
    const unreachable = await run(closed);
    expect(unreachable).toMatch(
      /^textgate: no gateway answers on http:\/\/127\.0\.0\.1:1 \([\w ]+\): start it/,
    );
    const named = await run({ ...closed, TEXTGATE_URL: 'http://user:secret@127.0.0.1:1' });
    expect(named).toMatch(/^textgate: TEXTGATE_URL: expected no user and no password/);
    expect(named).not.toContain('secret');
    expect(await run({ TEXTGATE_URL: url }, '--key', 'sk-wrong')).toMatch(/^textgate: 401: /);
    expect(await run({ TEXTGATE_URL: url, TEXTGATE_API_KEY: key }, '--model', 'smal')).toMatch(
      /^textgate: 404: .*smal/,
    );
  });

  test('takes the address and the key from where clients have them', async () => {
    const { gateway } = await startScene(answer);
    const { key, url } = gateway;
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, 'key'), `${key}\n`);
    const { port } = new URL(url);
    for (const environment of [
      { OPENAI_BASE_URL: `${url}/v1/`, OPENAI_API_KEY: key },
      { TEXTGATE_PORT: port, TEXTGATE_KEY_FILE: 'key' },
      { TEXTGATE_PORT: port, TEXTGATE_KEY: key },
    ])
      expect(await runCommand(['say', 'x'], folder, environment)).toMatchObject({
        code: 0,
        stdout: 'Hello there\n',
      });
    expect(await runCommand(['say', 'x', '--url', `${url}/v1`, '--key', key], folder)).toMatchObject({
      code: 0,
    });
  });

  test('Ctrl-C cancels the request', async () => {
    const { environment, upstream } = await startScene(() => {});
    const saying = startTextgate(['say', 'x'], '/', environment);
    await eventually('the upstream is called', () => upstream.running === 1);
    saying.signal('SIGINT');
    expect(await saying.finished).toMatchObject({ code: 130, stdout: '', stderr: 'textgate: cancelled\n' });
    await eventually('the call is stopped', () => upstream.running === 0);
  });

  test('is offered by the greeting, as a line that works', async () => {
    const served = serveHere(['serve'], makeTemporaryFolder(), {
      TEXTGATE_PORT: '0',
      TEXTGATE_ADMIN_PORT: '0',
      TEXTGATE_STORAGE_URL: 'sqlite::memory:',
    });
    const [, url = '', key = ''] = await served.printed(
      /^ {2}TEXTGATE_URL=(\S+) TEXTGATE_API_KEY=(\S+) npm run textgate -- say "Say hello"$/m,
    );
    const environment = { TEXTGATE_URL: url, TEXTGATE_API_KEY: key };
    const { code, stdout } = await runCommand(['say', 'Say hello'], '/', environment);
    expect([code, stdout.length > 1]).toEqual([0, true]);
  });
});

describe.skipIf(terminalAbsence !== null)(`textgate say at a terminal ${terminalAbsence ?? ''}`, () => {
  test.each([80, 200])(
    'of %i columns shows the text as it comes, then tokens, charge and times',
    async (columns) => {
      let goOn = (): void => {};
      const { environment } = await startScene((response) => {
        const frames = chatFrames(['one \u001b[31m', 'two 👩‍👩']);
        sendStream(response, frames.slice(0, 2));
        goOn = () => void response.end(frames.slice(2).join(''));
      });
      const terminal = startAtTerminal(['say', 'x'], { rows: 24, columns }, environment);
      await terminal.shows(/^one \\u\{1b\}\[31m$/);
      goOn();
      expect(await terminal.finished).toEqual({ code: 0, isRestored: true });
      const [text, ...rest] = terminal.screen();
      expect(text).toBe('one \\u{1b}[31mtwo 👩‍👩');
      expect(rest.join(' ')).toMatch(
        /^11 tokens in, 7 out; charge 0\.000025 USD; first text after [\d.]+ m?s; [\d.]+ m?s in total; +req_\w{32} *$/,
      );
    },
  );
});
