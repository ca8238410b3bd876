import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { allNames, goodNames, policyBehaviours, textIn } from '../policies/behaviours.ts';
import type { Script } from '../policies/behaviours.ts';

/** How long an upstream has a mood at most, in milliseconds. */
const longestMoodMs = 8_000;

/** The part of the time in which an upstream does nothing but answer. */
const goodPart = 0.6;

/** What the upstream that reports limits allows in a minute: more than it ever gets. */
const reportedPerMinute = 5_000;

/** One call, as its upstream saw it. Times are on the monotonic clock of this process, in milliseconds. */
export interface ServedCall {
  /** The number of its request. */
  readonly number: number;
  readonly upstream: string;
  readonly behaviour: string;
  readonly kind: 'text' | 'shadow' | 'passed';
  readonly arrivedMs: number;
  /** When its answer was given whole, or its connection was gone; `null` while it runs. */
  endedMs: number | null;
  /** Whether the gateway closed the connection before the answer was over. */
  isCut: boolean;
  status: number | null;
  /** The text that was handed over, and the text that would be. */
  text: string;
  readonly wholeText: string;
  /** Whether it said that its text is complete. */
  isWhole: boolean;
  /** What it reported; `null` as long as it did not. */
  usage: { readonly input: number; readonly output: number } | null;
  readonly usual: { readonly input: number; readonly output: number };
}

/** Some providers on loopback with random moods, which note what they get. */
export interface MoodyServers {
  /** The base URL of each, by name. */
  readonly urls: ReadonlyMap<string, string>;
  readonly calls: readonly ServedCall[];
  /** Has all of them answer well from now on. */
  calm(): void;
  /** Closes the connections on which nothing is called. */
  closeIdle(): void;
  close(): void;
}

/** The prompt of a request, by which upstreams know its number; nothing else has its words. */
export function promptOf(number: number, length: number): string {
  return `wordsofaprompt request ${number}. ${'x'.repeat(length)}`;
}

/** Starts providers of these names. That of `reporting` reports limits in its answers. */
export async function startMoodyServers(
  names: readonly string[],
  random: () => number,
  reporting: string,
): Promise<MoodyServers> {
  const calls: ServedCall[] = [];
  const servers: Server[] = [];
  const urls = new Map<string, string>();
  let isCalm = false;
  for (const upstream of names) {
    const behaviourNow = moods(random, () => isCalm);
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const call = begin(upstream, body, behaviourNow());
        calls.push(call);
        response.on('close', () => end(call, !response.writableFinished));
        const limits = upstream === reporting ? reportLimits(calls, upstream) : {};
        void play(call, /"stream":true/.test(body), response, random, limits);
      });
    });
    // Kept connections are closed by the gateway or at the end of the run: a provider that closes one is a behaviour.
    server.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
    urls.set(upstream, `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  }
  return {
    urls,
    calls,
    calm: () => (isCalm = true),
    closeIdle: () => servers.forEach((server) => server.closeIdleConnections()),
    close() {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

/** What an upstream does with its next call: it has one mood for a while. */
function moods(random: () => number, isCalm: () => boolean): () => string {
  let untilMs = 0;
  let names = goodNames;
  const one = (from: readonly string[]): string => from[Math.floor(random() * from.length)] ?? '';
  return () => {
    if (isCalm()) return 'answers at once';
    if (performance.now() > untilMs) {
      untilMs = performance.now() + random() * longestMoodMs;
      const drawn = random();
      names = drawn < goodPart ? goodNames : drawn < goodPart + 0.3 ? allNames : [one(allNames)];
    }
    return one(names);
  };
}

function begin(upstream: string, body: string, behaviour: string): ServedCall {
  const number = Number(/request (\d+)\./.exec(body)?.[1]);
  const isPassed = body.includes('"passed"');
  return {
    number,
    upstream,
    behaviour,
    kind: isPassed ? 'passed' : body.includes('"model":"copy"') ? 'shadow' : 'text',
    arrivedMs: performance.now(),
    endedMs: null,
    isCut: false,
    status: null,
    text: '',
    wholeText: `answer${number}of${upstream} end`,
    isWhole: false,
    usage: null,
    usual: { input: 10 + (number % 40), output: 2 + (number % 9) },
  };
}

/** Before the last bytes go out: the permit of a request that has read them may be given to the next one at once. */
function end(call: ServedCall, isCut: boolean): void {
  if (call.endedMs !== null) return;
  call.endedMs = performance.now();
  call.isCut = isCut;
}

function reportLimits(calls: readonly ServedCall[], upstream: string): Record<string, string> {
  const fromMs = performance.now() - 60_000;
  const used = calls.filter((call) => call.upstream === upstream && call.arrivedMs > fromMs).length;
  return {
    'x-ratelimit-limit-requests': String(reportedPerMinute),
    'x-ratelimit-remaining-requests': String(Math.max(0, reportedPerMinute - used)),
    'x-ratelimit-reset-requests': '60s',
  };
}

/** Plays one of the behaviours of the policies' run on a connection. Faults that are silence are silence here. */
async function play(
  call: ServedCall,
  isStream: boolean,
  response: ServerResponse,
  random: () => number,
  limits: Record<string, string>,
): Promise<void> {
  const script = await scriptOf(call, isStream, random);
  const { head, headMs, steps } = script;
  if (!(await passed(headMs, response))) return;
  if ('fault' in head) {
    if (!/timeout/.test(head.fault)) response.socket?.resetAndDestroy();
    return;
  }
  call.status = head.status;
  const pause = head.retryAfterMs === null ? {} : { 'retry-after': String(head.retryAfterMs / 1_000) };
  response.writeHead(head.status, { 'content-type': head.contentType, ...pause, ...limits });
  response.flushHeaders();
  let sent = '';
  for (const { afterMs, piece } of steps) {
    if (!(await passed(afterMs, response))) return;
    if (piece === null) {
      end(call, false);
      response.end();
      return;
    }
    if (typeof piece !== 'string') {
      if (!/timeout/.test(piece.fault)) response.socket?.resetAndDestroy();
      return;
    }
    sent += piece;
    note(call, sent);
    response.write(piece);
  }
}

function scriptOf(call: ServedCall, isStream: boolean, random: () => number): Script | Promise<Script> {
  const [first = '', second = ''] = call.wholeText.split(' ');
  const terms = {
    pieces: [`${first} `, second] as const,
    usage: call.usual,
    isStream: isStream && call.kind !== 'passed',
    upTo: (most: number) => Math.floor(random() * (most + 1)),
  };
  const behaviour = policyBehaviours[call.behaviour];
  if (behaviour === undefined) throw new Error(`there is no behaviour ${call.behaviour}`);
  return behaviour(terms);
}

function note(call: ServedCall, sent: string): void {
  call.text = textIn(sent);
  call.isWhole ||= sent.includes('"finish_reason":"stop"');
  const { input, output } = call.usual;
  if (sent.includes(`"prompt_tokens":${input},"completion_tokens":${output}`)) call.usage = call.usual;
}

/** Waits; resolves with whether the connection is still there. */
async function passed(durationMs: number, response: ServerResponse): Promise<boolean> {
  if (durationMs === Number.POSITIVE_INFINITY) return false;
  if (durationMs > 0) await wait(durationMs, undefined, { ref: false });
  return !response.destroyed;
}
