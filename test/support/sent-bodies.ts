import { askAdmin } from './admin-client.ts';
import { cut, chatFrames, sayTexts, sendJson, sendStream } from './scripted-upstream.ts';
import type { Script } from './scripted-upstream.ts';
import { openStage } from './stage.ts';
import type { RunningStage } from './stage.ts';
import type { TestGateway } from './test-gateway.ts';

/** What a body or an event is, by the name of its schema. */
export type SentKind = 'completion' | 'chunk' | 'response' | 'event' | 'error' | 'models' | 'model';

/** A body, or the data of an event, that a client got. */
export interface Sent {
  readonly kind: SentKind;
  /** How it came about. */
  readonly of: string;
  readonly body: unknown;
}

const usage = { prompt_tokens: 300, completion_tokens: 20, total_tokens: 320 };
const details = {
  prompt_tokens_details: { cached_tokens: 100 },
  completion_tokens_details: { reasoning_tokens: 9 },
};

/** A whole answer or a stream with these parts of the first choice, and a usage. */
const answer =
  (message: object, reason: string | null, counts: object | undefined): Script =>
  (response, request) => {
    const isStream = request.body.includes('"stream":true');
    const choice = { index: 0, [isStream ? 'delta' : 'message']: message, finish_reason: reason };
    const body = JSON.stringify({ id: 'x', created: 1, model: 'm', choices: [choice], usage: counts });
    if (isStream) sendStream(response, [`data: ${body}\n\n`, 'data: [DONE]\n\n']).end();
    else sendJson(response, 200, body);
  };
const afterText =
  (fail: (response: Parameters<Script>[0]) => void): Script =>
  (response, request) => {
    if (request.body.includes('"stream":true')) sendStream(response, chatFrames(['one ', 'two']).slice(0, 2));
    fail(response);
  };
const refuse =
  (status: number, body = '{"error":{"message":"no"}}'): Script =>
  (response) =>
    sendJson(response, status, body);

/** What an upstream does, by what comes of it. */
const scripts: Readonly<Record<string, Script>> = {
  'a whole answer': sayTexts(['one ', 'two']),
  'an answer at its length': sayTexts(['one'], 'length'),
  'a filtered answer': sayTexts(['one'], 'content_filter'),
  'an answer of no text': sayTexts([]),
  'thoughts and cached input': answer({ content: 'x', reasoning_content: 'y' }, 'stop', {
    ...usage,
    ...details,
  }),
  'thoughts alone': answer({ content: '', reasoning_content: 'y' }, 'length', { ...usage, ...details }),
  'no usage': answer({ content: 'x' }, 'stop', undefined),
  'a refusal of the model': answer({ refusal: 'I will not' }, 'stop', usage),
  'an error in the answer': afterText(
    (response) => void response.end('data: {"error":{"message":"no"}}\n\n'),
  ),
  'an end before the end': afterText((response) => cut(response, 'fin')),
  'a broken connection': afterText((response) => cut(response, 'rst')),
  'no known form': answer({}, 'stop', usage),
  'status 400': refuse(400),
  'status 401': refuse(401),
  'status 429': refuse(429),
  'status 500': refuse(500),
  'status 503': refuse(503),
};

const chat = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
const response = { model: 'small', input: 'x' };

/** Requests that are refused, by path. */
const refused: readonly (readonly [path: string, body: unknown, headers?: Record<string, string>])[] = [
  '/v1/chat/completions',
  '/v1/responses',
].flatMap(
  (path) =>
    [
      [path, '{'],
      [path, {}],
      [path, { ...chat, ...response, stream: 1 }],
      [path, { ...chat, ...response, model: 'none' }],
      [path, 'x'.repeat(70_000)],
      [path, chat, { authorization: 'Bearer x' }],
      [path, chat, { 'content-type': 'text/plain' }],
    ] as const,
);

/** Everything that clients of both protocols get, of every kind of end, with keys whose answers show their charge and others. */
export async function collectSent(): Promise<readonly Sent[]> {
  const stage = await openStage({
    price: { input: '1', output: '2' },
    server: { maxBody: '64KiB' },
    limits: { concurrency: 100 },
  });
  const showing = { compatibility: { usageCost: true, chargeComment: true } };
  return [...(await collectSentTo(stage, {})), ...(await collectSentTo(stage, showing))];
}

/** What a key with these settings gets. */
async function collectSentTo(
  { upstream, gateway }: RunningStage,
  settings: Parameters<TestGateway['gateway']['createKey']>[1],
): Promise<readonly Sent[]> {
  const { secret } = await gateway.gateway.createKey('reader', settings);
  const headers = { authorization: `Bearer ${secret}` };
  const post = (path: string, body: unknown, more = {}) =>
    gateway.post(path, body, { headers: { ...headers, ...more } });
  const get = (path: string) => fetch(gateway.url + path, { headers });
  const sent: Sent[] = [];
  const read = async (of: string, kinds: readonly [SentKind, SentKind], answered: Promise<Response>) => {
    sent.push(...(await readSent(of, kinds, await answered)));
    // Failures would close the way to the upstream for the next ones.
    await askAdmin(gateway, 'POST', '/upstreams/local/reset');
  };
  for (const [of, script] of Object.entries(scripts)) {
    upstream.play(script);
    for (const asked of [{}, { stream: true }, { stream: true, stream_options: { include_usage: true } }])
      await read(of, ['completion', 'chunk'], post('/v1/chat/completions', { ...chat, ...asked }));
    for (const stream of [false, true])
      await read(of, ['response', 'event'], post('/v1/responses', { ...response, stream }));
  }
  for (const [path, body, more] of refused)
    await read('a refusal', ['error', 'error'], post(path, body, more));
  await read('the list of models', ['models', 'error'], get('/v1/models'));
  await read('a model', ['model', 'error'], get('/v1/models/small'));
  for (const path of ['/v1/models/none', '/v1/nowhere'])
    await read('a refusal', ['error', 'error'], get(path));
  return sent;
}

async function readSent(
  of: string,
  [whole, part]: readonly [SentKind, SentKind],
  answered: Response,
): Promise<Sent[]> {
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const piece of answered.body ?? []) text += decoder.decode(piece, { stream: true });
  } catch {
    // A chat stream fails by a broken connection.
  }
  if (!/event-stream/.test(answered.headers.get('content-type') ?? '')) {
    const body: unknown = JSON.parse(text);
    return [{ kind: answered.status === 200 ? whole : 'error', of: `${of}: ${answered.status}`, body }];
  }
  return [...text.matchAll(/^data: (.+)$/gm)].flatMap(([, line = '']) => {
    if (line === '[DONE]') return [];
    const data = JSON.parse(line) as { readonly type?: string };
    const kind = part === 'chunk' && 'error' in data ? 'error' : part;
    return [{ kind, of: `${of}: ${data.type ?? 'chunk'}`, body: data }];
  });
}
