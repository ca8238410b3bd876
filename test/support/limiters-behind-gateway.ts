import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput, Gateway } from '../../src/index.ts';
import { eventually } from './eventually.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';
import { readLive } from './live-answer.ts';
import type { LiveAnswer } from './live-answer.ts';
import { sayTexts, startUpstream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';

const adminToken = 'an-admin-token-for-tests';

type UpstreamInput = Partial<ConfigInput['upstreams'][string]>;

/** A call that an upstream has not answered yet. */
interface HeldCall {
  /** The text of its question. */
  readonly asked: string;
  readonly response: ServerResponse;
  /** Answers it completely. */
  readonly say: () => void;
}

/** An upstream that holds every call until the test answers it. */
export interface HeldUpstream extends ScriptedUpstream {
  readonly calls: readonly HeldCall[];
}

export interface LimitersScene {
  readonly gateway: Gateway;
  readonly clock: FakeClock;
  readonly upstreams: readonly HeldUpstream[];
  readonly first: HeldUpstream;
  /** The settings of the upstreams `u0`, `u1`, ... are replaced. */
  readonly reload: (...settings: readonly UpstreamInput[]) => void;
  /** The config gets other groups; the settings of the upstreams are those of the start. */
  readonly regroup: (groups: NonNullable<ConfigInput['groups']>) => void;
  readonly ask: (question: string, more?: Asking) => LiveAnswer;
  /** Makes another key. */
  readonly key: (weight?: number) => Promise<string>;
  // eslint-disable-next-line typescript/no-explicit-any -- tests check what they read by their expectations
  readonly admin: (path: string, method?: string, body?: object) => Promise<any>;
  readonly metrics: () => Promise<string>;
  /** Resolves when so many requests wait for an upstream. */
  readonly waiting: (count: number) => Promise<void>;
}

interface Asking {
  readonly model?: 'small' | 'large';
  readonly key?: string;
  readonly stream?: boolean;
  readonly signal?: AbortSignal;
  readonly path?: string;
}

async function holdCalls(): Promise<HeldUpstream> {
  const upstream = await startUpstream();
  const calls: HeldCall[] = [];
  upstream.play((response, request) => {
    const { messages = [] } = JSON.parse(request.body) as { messages?: { content: string }[] };
    const say = (): void => void sayTexts(['one ', 'two'])(response, request);
    calls.push({ asked: messages.at(-1)?.content ?? request.path, response, say });
  });
  return Object.assign(upstream, { calls });
}

/** Starts a gateway whose model `small` has a route over each of some upstreams, and `large` one over the first. */
export async function openWithLimiters(...settings: readonly UpstreamInput[]): Promise<LimitersScene> {
  const upstreams = await Promise.all(settings.map(() => holdCalls()));
  const clock = createFakeClock();
  const configOf = (all: readonly UpstreamInput[]): ConfigInput => ({
    server: { port: 0 },
    admin: { port: 0, token: adminToken },
    storage: { url: 'sqlite::memory:' },
    limits: { concurrency: 100, requestsPerMinute: 10_000 },
    upstreams: Object.fromEntries(
      all.map((each, at) => [`u${at}`, { url: upstreams[at]?.url ?? '', ...each }]),
    ),
    models: {
      small: { routes: all.map((_each, at) => ({ upstream: `u${at}`, model: 'tiny' })), free: true },
      large: { routes: [{ upstream: 'u0', model: 'huge' }], free: true },
    },
    passthrough: [{ path: '/tokenize', upstream: 'u0', free: true }],
  });
  const gateway = createGateway(configOf(settings), { logLevel: 'silent', clock });
  const { url, adminUrl } = await gateway.listen();
  const key = async (weight = 1): Promise<string> => (await gateway.keys.create({ name: 'x', weight })).key;
  const usual = await key();
  onTestFinished(async () => {
    for (const { calls } of upstreams) for (const { response } of calls) response.destroy();
    await gateway.close();
    await Promise.all(upstreams.map((upstream) => upstream.close()));
  });
  const admin: LimitersScene['admin'] = async (path, method = 'GET', body) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await fetch(`${adminUrl}/admin${path}`, { method, headers, ...sent })).json();
  };
  const [first] = upstreams as [HeldUpstream];
  return {
    gateway,
    clock,
    upstreams,
    first,
    key,
    reload: (...next) => void gateway.reload(configOf(next)),
    regroup: (groups) => void gateway.reload({ ...configOf(settings), groups }),
    ask: (
      question,
      { model = 'small', key: secret = usual, stream = false, signal, path = '/v1/chat/completions' } = {},
    ) =>
      readLive(
        fetch(url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: question }] }),
          ...(signal === undefined ? {} : { signal }),
        }),
      ),
    admin,
    metrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    waiting: (count) =>
      eventually(`${count} wait`, async () => {
        const { data } = (await admin('/in-flight')) as { data: { waits_for: string | null }[] };
        return data.filter(({ waits_for: what }) => what === 'upstream').length === count;
      }),
  };
}

/** Resolves when an upstream has got so many calls in all. */
export const called = ({ calls }: HeldUpstream, count: number): Promise<void> =>
  eventually(`${count} calls`, () => calls.length === count);

/** The answer of one of the calls, in their order. */
export function responseOf({ calls }: HeldUpstream, at: number): ServerResponse {
  const call = calls[at];
  if (call === undefined) throw new Error(`call ${at} has not come`);
  return call.response;
}

/** Lets the fake time pass, in steps small enough for what each of them starts. */
export async function pass(clock: FakeClock, milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 500) {
    clock.advance(Math.min(500, left));
    for (let turn = 0; turn < 5; turn++) await setImmediate();
  }
}
