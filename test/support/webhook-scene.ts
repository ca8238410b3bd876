import { setImmediate } from 'node:timers/promises';
import { plant } from './canaries.ts';
import { createFakeClock } from './fake-clock.ts';
import type { FakeClock } from './fake-clock.ts';
import { sayTexts, startUpstream } from './scripted-upstream.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import type { TestGateway } from './test-gateway.ts';
import { startReceiver } from './webhook-receiver.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** A dollar for a token of output: 7 USD for each answer of the scripted upstream. */
export const price = { input: '0', output: '1000000' };
const costUsd = 7;

/** A question of a key, whose text no event may show. */
export const question = { model: 'small', messages: [{ role: 'user', content: 'a question of a key' }] };

/** What a gateway with a webhook has around it: a clock, an upstream that answers, and a receiver. */
export interface WebhookScene {
  readonly clock: FakeClock;
  readonly upstream: ScriptedUpstream;
  readonly receiver: WebhookReceiver;
  /** Closes upstream and receiver. Throws if a request to the receiver was not signed, or an event has changed. */
  close(): Promise<void>;
}

export async function startWebhookScene(): Promise<WebhookScene> {
  const [upstream, receiver] = await Promise.all([startUpstream(), startReceiver()]);
  upstream.play(sayTexts(['a ', 'b']));
  plant('a-secret-in-the-query');
  return {
    clock: createFakeClock(),
    upstream,
    receiver,
    async close() {
      await Promise.all([upstream.close(), receiver.close()]);
      if (receiver.faults.length > 0) throw new Error(receiver.faults.join());
    },
  };
}

/** Asks the question with a key, which costs it 7 USD. Throws unless it is answered. */
export async function spend(gateway: TestGateway, secret: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await gateway.post('/v1/chat/completions', question, { headers });
  const text = await response.text();
  if (response.status !== 200) throw new Error(text);
}

/** Limits under which many requests at a time reach the mark of a low balance. */
export const lowBalanceLimits = { requestsPerMinute: 1_000_000, concurrency: 100, lowBalance: '10' };

/** A key with 12 USD, and a function that takes it below 10 USD once more. */
export async function makePayer(gateway: TestGateway, name: string) {
  const { key, secret } = await gateway.gateway.createKey(name, { balanceNanos: 12e9 });
  let crossings = 0;
  return {
    id: key.id,
    async cross(): Promise<void> {
      if (crossings++ > 0)
        await gateway.gateway.keys.credit(key.id, {
          amount: String(costUsd),
          reference: `credit ${crossings}`,
        });
      await spend(gateway, secret);
    },
  };
}

/** How long a condition may take to come true, in milliseconds: a bound against hanging, not a measure. */
const patienceMs = 60_000;

/** Lets fake time pass, a second for each turn of the event loop, until a condition holds. */
export async function advanceUntil(clock: FakeClock, what: string, condition: () => boolean): Promise<void> {
  for (const startedMs = performance.now(); !condition(); await setImmediate()) {
    if (performance.now() - startedMs > patienceMs) throw new Error(`never became true: ${what}`);
    clock.advance(1_000);
  }
}

/** Lets fake time pass, a second for each turn of the event loop. */
export async function advanceBy(clock: FakeClock, durationMs: number): Promise<void> {
  for (let passedMs = 0; passedMs < durationMs; passedMs += 1_000) {
    clock.advance(1_000);
    await setImmediate();
  }
}
