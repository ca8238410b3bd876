import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startCommanded } from '../support/commanded-gateway.ts';

/** A gateway with a model whose first upstream refuses connections, and a model whose upstream never answers. */
async function startGateway() {
  const silent = await startUpstream();
  silent.play(() => {});
  const gateway = await startCommanded({
    config: {
      upstreams: {
        closed: { url: 'http://127.0.0.1:1/v1' },
        demo: { url: 'demo:' },
        silent: { url: silent.url },
        single: { url: silent.url, maxInFlight: 1, queueWait: '2m' },
      },
      models: {
        second: {
          routes: [
            { upstream: 'closed', model: 'm1' },
            { upstream: 'demo', model: 'demo' },
          ],
          price: { input: '1', output: '2' },
        },
        slow: { routes: [{ upstream: 'silent', model: 'm2' }], free: true },
        narrow: { routes: [{ upstream: 'single', model: 'm3' }], free: true },
      },
    },
    keySettings: { concurrency: 5, balance: '3.00' },
  });
  const ask = (model: string): Promise<Response> =>
    gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] });
  return { gateway, silent, ask, running: gateway.running };
}

describe('textgate show and cancel', () => {
  test('show prints the life of a settled request on lines of at most 100 characters', async () => {
    const { gateway, silent, ask } = await startGateway();
    const response = await ask('second');
    await response.text();
    const id = response.headers.get('x-request-id') ?? '';

    const { code, stdout } = await gateway.run('show', id);
    expect(code).toBe(0);
    for (const line of [
      new RegExp(`^request +${id}$`, 'm'),
      /^key +test \(key_\w{12}\)$/m,
      /^limits +5 at once, 60 per minute, wait for a slot: none$/m,
      /^arrived +\d{4}-\d\d-\d\dT[\d:.]+Z$/m,
      /^asked for +chat, sync, model second$/m,
      /^dispatched +after \d+ ms$/m,
      /^hold +0\.00\d+ USD$/m,
      /^attempt 1 +closed, model m1: unreachable, from \d+ ms for \d+ ms\n +.*(refused|REFUSED)/m,
      /^attempt 2 +demo, model demo: ok, from \d+ ms for \d+ ms$/m,
      /^first text +\d+ ms$/m,
      /^total +\d+ ms$/m,
      /^tokens +\d+ in \(0 cached, 0 cache write\), \d+ out \(0 reasoning tokens\); source: upstream$/m,
      /^price +1\.00 USD in, 1\.00 cached, 1\.25 cache write, 2\.00 out per million; 0\.00 per request$/m,
      /^charge +0\.0000\d+ USD$/m,
      /^outcome +completed, status 200$/m,
    ])
      expect(stdout).toMatch(line);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);

    const json = JSON.parse((await gateway.run('show', id, '--json')).stdout) as object;
    expect(json).toMatchObject({ request_id: id, outcome: 'completed', attempts: [{}, {}] });
    await silent.close();
  });

  test('show prints the words of an upstream that refused the request', async () => {
    const { gateway, silent, ask } = await startGateway();
    silent.play((response) => {
      const error = {
        message: 'max_tokens is too large: this model supports at most 4096',
        code: 'too_large',
      };
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
    });
    const response = await ask('slow');
    await response.text();
    const { stdout } = await gateway.run('show', response.headers.get('x-request-id') ?? '');
    expect(stdout).toMatch(
      /^ +the upstream's words: 400, too_large, max_tokens is too large: this model supports at\n +most 4096$/m,
    );
    expect(stdout).toMatch(/^price +free$/m);
    expect(stdout).toMatch(/^outcome +upstream_failed, status 400$/m);
    await silent.close();
  });

  test('show finds a request by the beginning or the end of its id', async () => {
    const { gateway, silent, ask } = await startGateway();
    const ids = [];
    for (const response of [await ask('second'), await ask('second')]) {
      await response.text();
      ids.push(response.headers.get('x-request-id') ?? '');
    }
    const [id = '', other = ''] = ids;
    for (const part of [id.slice(-8), id.slice(0, 20), id.slice('req_'.length, 20)]) {
      const found = await gateway.run('show', part);
      expect(found.stdout).toContain(id);
      expect(found.stdout).not.toContain(other);
    }

    const wrong = async (text: string): Promise<string> => {
      const { code, stdout, stderr } = await gateway.run('show', text);
      expect([code, stdout]).toEqual([1, '']);
      return stderr;
    };
    expect(await wrong('xyz')).toContain('xyz is no request id: expected req_ and 32 digits');
    expect(await wrong('ab')).toContain('ab is no request id');
    const absent = (BigInt(`0x${id.slice(-8)}`) ^ 1n).toString(16).padStart(8, '0');
    expect(await wrong(absent)).toContain(
      `no request in progress or among the newest 1000 has an id with ${absent}`,
    );
    const unknown = `req_${'0'.repeat(32)}`;
    const said = await wrong(unknown);
    expect(said).toContain(`no request ${unknown} is recorded or in progress`);
    expect(said).toContain(
      'that got the answer of another request (replayOf in its line) is in the log only',
    );
    await silent.close();
  });

  test('top lists a request with its key’s name, show prints what is known of it, and cancel stops it', async () => {
    const { gateway, silent, ask, running } = await startGateway();
    const response = ask('slow');
    await eventually('the upstream is called', () => silent.running === 1);
    const [{ request_id: id } = { request_id: '' }] = await running();

    expect((await gateway.run('top')).stdout).toMatch(
      new RegExp(
        `^REQUEST +FOR +FIRST TEXT +KEY +MODEL +UPSTREAM +MODE +PROTOCOL\n${id.slice(-8)} +[\\d.]+ s +none yet +test +slow +silent +sync +chat\n$`,
        'm',
      ),
    );
    const shown = (await gateway.run('show', id.slice(-8))).stdout;
    expect(shown).toMatch(/^state +in progress for [\d.]+ s$/m);
    expect(shown).toMatch(/^asked for +chat, sync, model slow$/m);
    expect(shown).toMatch(/^upstream +silent\nfirst text +none yet$/m);

    expect(await gateway.run('cancel', id.slice(-8))).toMatchObject({
      code: 0,
      stdout: `${id} is cancelled\n`,
    });
    expect((await response).status).toBe(499);
    await eventually('the upstream’s call is stopped', () => silent.running === 0);
    const again = await gateway.run('cancel', id);
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(again.stderr).toContain('No request with this id is running.');
    expect((await gateway.run('show', id)).stdout).toMatch(/^outcome +cancelled, status 499$/m);
    await silent.close();
  });

  test('top and show say how many clients get an answer, and which request another one has joined', async () => {
    const { gateway, silent, running } = await startGateway();
    silent.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
    const body = { model: 'slow', stream: true, messages: [{ role: 'user', content: 'x' }] };
    const ask = (signal: AbortSignal | null = null) =>
      readLive(
        fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            'idempotency-key': 'once',
          },
          body: JSON.stringify(body),
          signal,
        }),
      );
    const leaving = new AbortController();
    const first = ask(leaving.signal);
    await eventually('the first one has text', () => first.text.includes('one '));
    const second = ask();
    await eventually('the second one has joined', () => second.text.includes('one '));
    const [id, joined] = [first, second].map(({ headers }) => headers.get('x-request-id') ?? '') as [
      string,
      string,
    ];
    const { stdout: listed } = await gateway.run('top');
    expect(listed).toMatch(new RegExp(`^${id.slice(-8)} .* silent +2 +stream`, 'm'));
    expect(listed).toMatch(
      new RegExp(`^${joined.slice(-8)} .* joins ${id.slice(-8)} .* slow +- +- +stream`, 'm'),
    );
    expect((await gateway.run('show', id)).stdout).toMatch(/^clients +2 listening$/m);
    const { stdout: shown } = await gateway.run('show', joined);
    expect(shown).toMatch(new RegExp(`^joined +${id}, whose answer it gets$`, 'm'));
    expect(shown).not.toContain('none called yet');

    await gateway.run('cancel', joined);
    leaving.abort();
    await expect.poll(async () => (await running()).map(({ listening }) => listening)).toEqual([0]);
    expect((await gateway.run('top')).stdout).toMatch(/ silent +none +stream/);
    expect((await gateway.run('show', id)).stdout).toMatch(
      /^clients +none: it goes on for one that comes back$/m,
    );
    await gateway.run('cancel', id);
    await silent.close();
  });

  test('top and show say which upstream a request waits for, its position in the queue, and how long it may take', async () => {
    const { gateway, silent, ask, running } = await startGateway();
    const answers = [ask('narrow')];
    await eventually('the upstream is called', () => silent.running === 1);
    answers.push(ask('narrow'));
    await expect.poll(async () => (await running()).length).toBe(2);
    const rows = await running();
    const waits = rows.find(({ waits_for: what }) => what === 'upstream');
    const id = waits?.request_id ?? '';
    const listed = (await gateway.run('top')).stdout;
    expect(listed).toMatch(
      new RegExp(`^${id.slice(-8)} .* position 1, ~\\d+ (s|min) .* narrow +single `, 'm'),
    );
    const shown = (await gateway.run('show', id)).stdout;
    expect(shown).toMatch(/^waits for +single: position 1, ~\d+ (s|min)$/m);
    for (const { request_id: each } of rows) await gateway.run('cancel', each);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([499, 499]);
    await silent.close();
  });

  test('top and show name the upstream of a stream in progress, and when its first text came', async () => {
    const { gateway, silent, running } = await startGateway();
    silent.play((response) => void sendStream(response, chatFrames(['one ']).slice(0, 2)));
    const live = readLive(
      gateway.post('/v1/chat/completions', {
        model: 'slow',
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      }),
    );
    await eventually('the first text has arrived', () => live.text.includes('one '));
    const [{ request_id: id, upstream, first_text_ms: firstTextMs } = { request_id: '' }] = await running();
    expect({ upstream, firstTextMs }).toEqual({ upstream: 'silent', firstTextMs: expect.any(Number) });
    expect((await gateway.run('top')).stdout).toMatch(new RegExp(` ${firstTextMs} ms .* slow +silent `));
    expect((await gateway.run('show', id)).stdout).toMatch(
      new RegExp(`^upstream +silent\nfirst text +${firstTextMs} ms$`, 'm'),
    );
    const json = JSON.parse((await gateway.run('show', id, '--json')).stdout) as object;
    expect(json).toMatchObject({
      outcome: null,
      upstream: 'silent',
      timings: { first_byte_ms: firstTextMs },
    });
    await gateway.run('cancel', id);
    await live.ended;
    expect(live.text).toContain('"code":"request_cancelled"');
    await silent.close();
  });

  test('cancel refuses a part that several ids have, and stops none of them', async () => {
    const { gateway, silent, ask, running } = await startGateway();
    const answers = Array.from({ length: 5 }, () => ask('slow'));
    await eventually('all upstream calls run', () => silent.running === answers.length);
    expect((await gateway.run('cancel', 'req_')).code).toBe(1);
    expect(await running()).toHaveLength(answers.length);
    for (const { request_id: id } of await running()) await gateway.run('cancel', id);
    await Promise.all(answers);
    await silent.close();
  });
});
