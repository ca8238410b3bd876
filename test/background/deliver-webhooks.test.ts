import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { deliverWebhooks } from '../../src/background/webhooks/deliver-webhooks.ts';
import type { Deliveries, DueDelivery, SendResult, Webhook } from '../../src/domain/ports/outbox.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** Deliveries that wait in memory, each of a subject of its own. */
class MemoryDeliveries implements Deliveries {
  readonly #due = new Map<string, DueDelivery>();
  readonly ended: string[] = [];
  readonly retries: number[] = [];
  cleanings = 0;
  /** How many writes fail from now on. */
  failures = 0;
  /** Resolves while reads are held. */
  reading: Promise<void> = Promise.resolve();

  add(id: string, attempts = 0, type = 'upstream.down'): void {
    const event = { id, type, createdAtMs: 0, data: {} };
    this.#due.set(id, { event, subject: id, attempts });
  }

  async route() {
    return 0;
  }

  async listDue(_webhook: string, limit: number) {
    const found = [...this.#due.values()].slice(0, limit);
    await this.reading;
    return found;
  }

  #write(id: string): void {
    if (this.failures-- > 0) throw new Error('the database is away');
    this.#due.delete(id);
  }

  async end({ event: { id } }: DueDelivery, _webhook: string, state: string, result: string) {
    this.#write(id);
    this.ended.push(`${id} ${state}: ${result}`);
  }

  async retry({ event: { id } }: DueDelivery, _webhook: string, delayMs: number) {
    this.#write(id);
    this.retries.push(delayMs);
  }

  async oldestAgeMs() {
    return this.#due.size > 0 ? 1 : null;
  }

  async clean() {
    this.cleanings++;
  }
}

function start(duty: { isOurs: boolean } | null = null) {
  const clock = createFakeClock();
  const deliveries = new MemoryDeliveries();
  const sent: string[] = [];
  const faults: string[] = [];
  const results: string[] = [];
  const calls: string[] = [];
  const state = {
    answer: async (): Promise<SendResult> => ({ kind: 'delivered', status: 200 }),
    webhooks: [] as readonly Webhook[],
  };
  const webhook: Webhook = {
    name: 'ops',
    origin: 'https://hooks.example',
    types: ['upstream.down'],
    send(id, _body, signal) {
      sent.push(id);
      const interrupted = new Promise<SendResult>((resolve) =>
        signal.addEventListener('abort', () => resolve({ kind: 'interrupted' })),
      );
      return Promise.race([state.answer(), interrupted]);
    },
  };
  state.webhooks = [webhook];
  const delivery = deliverWebhooks({
    deliveries,
    ready: Promise.resolve(),
    clock,
    random: () => 0.5,
    webhooks: () => state.webhooks,
    duty:
      duty === null
        ? null
        : {
            async isOurs() {
              calls.push('isOurs');
              return duty.isOurs;
            },
            async giveUp() {
              calls.push('giveUp');
            },
          },
    onResult: (_webhook, result) => void results.push(result),
    onFault: (message) => void faults.push(message),
  });
  onTestFinished(() => delivery.stop());
  /** Lets some looks at what is due pass, with all that follows from each. */
  const look = async (times = 1): Promise<void> => {
    for (let at = 0; at < times * 5; at++) {
      await setImmediate();
      if (at % 5 === 4) clock.advance(1_000);
    }
    await setImmediate();
  };
  return { clock, deliveries, sent, faults, results, calls, state, webhook, delivery, look };
}

test('a result is written until the database takes it, and the event is not sent again meanwhile', async () => {
  const { deliveries, sent, faults, look } = start();
  deliveries.failures = 3;
  deliveries.add('evt_1');
  await look(10);
  expect(sent).toEqual(['evt_1']);
  expect(deliveries.ended).toEqual(['evt_1 delivered: status 200']);
  expect(faults).toHaveLength(3);
});

test('eight events are on their way to a webhook at a time, and the others follow', async () => {
  const { deliveries, sent, state, look } = start();
  const answers: ((result: SendResult) => void)[] = [];
  state.answer = () => new Promise((resolve) => void answers.push(resolve));
  for (let at = 0; at < 20; at++) deliveries.add(`evt_${at}`);
  await look(5);
  expect(sent).toHaveLength(8);
  answers[0]?.({ kind: 'delivered', status: 204 });
  await look(2);
  expect(sent).toHaveLength(9);
  expect(new Set(sent).size).toBe(9);
});

test('an event whose attempt ends during a read of what is due is not sent a second time by that read', async () => {
  const { deliveries, sent, state, look } = start();
  const first = Promise.withResolvers<SendResult>();
  state.answer = () => first.promise;
  deliveries.add('evt_1');
  await look(2);
  const read = Promise.withResolvers<void>();
  deliveries.reading = read.promise;
  await look();
  first.resolve({ kind: 'failed', reason: 'status 500', retryAfterMs: null });
  await look();
  read.resolve();
  await look(3);
  expect(sent).toEqual(['evt_1']);
  expect(deliveries.retries).toEqual([5_000]);
});

test('a process without webhooks cleans, and leaves the duty to another one', async () => {
  const { deliveries, calls, state, webhook, look } = start({ isOurs: true });
  state.webhooks = [];
  await look(5);
  expect(calls).toEqual(['isOurs', 'giveUp']);
  expect(deliveries.cleanings).toBe(1);
  deliveries.add('evt_1');
  state.webhooks = [webhook];
  await look(3);
  expect(deliveries.ended).toHaveLength(1);
});

test('a process without the duty sends nothing, shows no age and cleans nothing', async () => {
  const { deliveries, sent, delivery, look } = start({ isOurs: false });
  deliveries.add('evt_1');
  await look(20);
  expect([sent, deliveries.cleanings, delivery.oldestAgeMs()]).toEqual([[], 0, null]);
});

test('an attempt that is interrupted counts nowhere', async () => {
  const { deliveries, results, state, look } = start();
  state.answer = async () => ({ kind: 'interrupted' });
  deliveries.add('evt_1');
  await look(3);
  expect([deliveries.ended, deliveries.retries, results]).toEqual([[], [], []]);
});

test('the last attempt gives the event up, and a wait is as long as the receiver asks', async () => {
  const { deliveries, results, faults, state, look } = start();
  state.answer = async () => ({ kind: 'failed', reason: 'status 429', retryAfterMs: 120_000 });
  deliveries.add('evt_1');
  await look(2);
  expect(deliveries.retries).toEqual([120_000]);
  deliveries.add('evt_2', 1_000);
  await look(2);
  expect(deliveries.ended).toEqual(['evt_2 dead: status 429']);
  expect(results).toEqual(['failed', 'failed', 'dead']);
  expect(faults).toHaveLength(2);
});

test('an event that can not be written fails alone, and the others are sent', async () => {
  const { deliveries, sent, faults, look } = start();
  deliveries.add('evt_1', 0, 'budget.level');
  deliveries.add('evt_2');
  await look(3);
  expect(sent).toEqual(['evt_2']);
  expect(deliveries.retries).toEqual([5_000]);
  expect(faults[0]).toBe('an event could not be written');
});
