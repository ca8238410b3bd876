import { Agent, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { keyIdOf, secretOf } from '../support/filled-database.ts';
import { sendToParent } from './send-to-parent.ts';

/** The order to the load process: a rate of requests for a time, or one request after the other. */
export interface LoadOrder {
  readonly url: string;
  /** How many of the filled keys are used; each request takes a random one. */
  readonly keys: number;
  readonly load:
    | { readonly perSecond: number; readonly durationMs: number }
    /** `forget` is the admin listener that empties the key cache before every request. */
    | {
        readonly sequential: number;
        readonly forget: { readonly url: string; readonly token: string } | null;
      };
}

/** The result of a load; durations in milliseconds. */
export interface LoadResult {
  readonly answers: number;
  /** Statuses other than 200, with their numbers. */
  readonly failures: Readonly<Record<string, number>>;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** The longest time without any answer. */
  readonly longestGapMs: number;
  /** The end of that time, since the start of the load. */
  readonly gapEndMs: number;
  /** The longest delay of this process itself: shorter gaps may be its own. */
  readonly ownDelayMs: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: 200 });

/** Sends a request and reads its answer; resolves with the status. */
function send(url: string, method: string, secret: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    request(url, { method, agent, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    })
      .on('error', reject)
      .end(body);
  });
}

async function run({ url, keys, load }: LoadOrder): Promise<LoadResult> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const latencies: number[] = [];
  const failures: Record<string, number> = {};
  let lastAnswerMs = performance.now();
  const startedMs = performance.now();
  let [longestGapMs, gapEndMs] = [0, 0];
  const ask = async (): Promise<void> => {
    const sentMs = performance.now();
    const body = `{"model":"small","stream":${Math.random() < 0.5},"messages":[{"role":"user","content":"x"}]}`;
    const secret = secretOf(Math.floor(Math.random() * keys));
    const status = await send(`${url}/v1/chat/completions`, 'POST', secret, body).catch(() => 'broken');
    const nowMs = performance.now();
    if (status !== 200) failures[status] = (failures[status] ?? 0) + 1;
    latencies.push(nowMs - sentMs);
    if (nowMs - lastAnswerMs > longestGapMs)
      [longestGapMs, gapEndMs] = [nowMs - lastAnswerMs, nowMs - startedMs];
    lastAnswerMs = nowMs;
  };
  if ('sequential' in load)
    for (let round = 0; round < load.sequential; round++) {
      if (load.forget !== null) {
        const path = `${load.forget.url}/admin/keys/${keyIdOf(0)}`;
        await send(path, 'PATCH', load.forget.token, `{"name":"round ${round}"}`);
      }
      await ask();
    }
  else await keepUp(ask, load.perSecond, load.durationMs);
  delay.disable();
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return {
    answers: latencies.length,
    failures,
    medianMs: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
    longestGapMs,
    gapEndMs,
    ownDelayMs: delay.max / 1e6,
  };
}

/** Starts requests at a steady rate, whether earlier ones are answered or not; resolves when all are. */
async function keepUp(ask: () => Promise<void>, perSecond: number, durationMs: number): Promise<void> {
  const startedMs = performance.now();
  const running = new Set<Promise<void>>();
  await new Promise<void>((resolve) => {
    let begun = 0;
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - startedMs;
      for (; begun < (elapsedMs / 1_000) * perSecond; begun++) {
        const one = ask().finally(() => running.delete(one));
        running.add(one);
      }
      if (elapsedMs < durationMs) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
  await Promise.all(running);
}

process.on('message', (order: LoadOrder) => {
  void run(order).then(sendToParent);
});
