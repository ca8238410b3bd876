import { writeEvent } from '../../domain/events.ts';
import type { StoredEvent } from '../../domain/events.ts';
import { createPause } from '../../domain/pause.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Deliveries, DueDelivery, SendResult, Webhook } from '../../domain/ports/outbox.ts';
import type { LeavableDuty } from '../../domain/ports/shared-changes.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { givenUpMs, keptMs, maxAttempts, retryDelayMs } from '../../domain/webhook-retries.ts';
import { isOurs, repeatTask } from '../repeat.ts';
import type { TaskPorts } from '../repeat.ts';

/** How often new events are looked for, in milliseconds: an event is sent about as long after it happened. */
const lookMs = 1_000;

/** How often old deliveries are removed, in milliseconds. */
const cleanMs = 3_600_000;

/** How often the age of the oldest waiting event is read, in milliseconds. */
const ageMs = 15_000;

/** What deliveries need. */
interface DeliveryPorts extends AttemptPorts, TaskPorts {
  readonly deliveries: Deliveries;
  /** Those of the config in force. */
  readonly webhooks: () => readonly Webhook[];
  /** What one of the processes does that share a database; `null` where this one has it alone. */
  readonly duty: LeavableDuty | null;
}

/**
 * Delivers events: those of one subject in their order, each until its receiver has accepted it or it is given up. An event
 * may be sent more than once, always with the same id. The result of an attempt is written until the database takes it.
 */
export function deliverWebhooks(ports: DeliveryPorts) {
  const { deliveries, clock, webhooks, duty } = ports;
  const running = new Map<string, RunningDeliveries>();
  let delivers = false;
  let oldest: number | null = null;
  let agedMs = Number.NEGATIVE_INFINITY;
  let cleanedMs = Number.NEGATIVE_INFINITY;

  const subscriptions = () => webhooks().map(({ name, types }) => ({ name, types }));
  const find = (name: string): Webhook | null =>
    delivers && !task.signal.aborted ? (webhooks().find((webhook) => webhook.name === name) ?? null) : null;
  const deliveriesTo = (name: string): RunningDeliveries => {
    const found = running.get(name) ?? new RunningDeliveries(name, () => find(name), ports, task.signal);
    running.set(name, found);
    return found;
  };
  /** Does nothing without webhooks, and leaves the duty to a process that has some: its config may be in force earlier. */
  const rest = async (): Promise<void> => {
    oldest = null;
    if (duty === null || !delivers) return;
    await duty.giveUp();
    delivers = false;
  };
  const failure = 'events for webhooks can not be read: they are sent later';
  const task = repeatTask(ports, { firstMs: 0, delayMs: lookMs, failure }, async (signal) => {
    const needsCleaning = clock.monotonicMs() - cleanedMs >= cleanMs;
    if (webhooks().length === 0 && !needsCleaning) return rest();
    delivers = await isOurs(duty);
    if (!delivers || signal.aborted) return void (oldest = null);
    while ((await deliveries.route(subscriptions())) > 0 && !signal.aborted);
    for (const { name } of webhooks()) void deliveriesTo(name).advance();
    for (const [name, { isIdle }] of running) if (find(name) === null && isIdle) running.delete(name);
    if (clock.monotonicMs() - agedMs >= ageMs) {
      agedMs = clock.monotonicMs();
      const names = webhooks().map(({ name }) => name);
      oldest = names.length === 0 ? null : ((await deliveries.oldestAgeMs(names)) ?? 0);
    }
    if (!needsCleaning) return;
    cleanedMs = clock.monotonicMs();
    await deliveries.clean(subscriptions(), { givenUpMs, keptMs });
  });
  return {
    /** The age of the oldest event that waits, in milliseconds; `null` without webhooks, and where another process delivers. */
    oldestAgeMs: () => oldest,
    /** Interrupts the attempts that run, whose events are sent again by the next process. Resolves when nothing runs any more. */
    async stop(): Promise<void> {
      await task.stop();
      await Promise.all([...running.values()].map((one) => one.ended()));
    },
  };
}

/** How many events are on their way to one webhook at a time. */
const maxInFlight = 8;

/** How long is waited before a result is written again that the database did not take, in milliseconds. */
const writeAgainMs = 1_000;

/** What attempts need. */
interface AttemptPorts {
  readonly deliveries: Pick<Deliveries, 'listDue' | 'end' | 'retry'>;
  readonly clock: Clock;
  /** Draws a number from 0 to 1. */
  readonly random: () => number;
  /** Takes what came of each attempt: `failed` ones are repeated, `dead` ones were the last. */
  readonly onResult: (webhook: string, result: 'delivered' | 'failed' | 'dead') => void;
  readonly onFault: ReportFault;
}

/** The deliveries to one webhook that run now. */
class RunningDeliveries {
  readonly #name: string;
  /** The webhook as the config in force has it; `null` when nothing more is to be sent to it. */
  readonly #webhook: () => Webhook | null;
  readonly #ports: AttemptPorts;
  readonly #signal: AbortSignal;
  readonly #running = new Map<string, Promise<void>>();
  /** The events whose attempt has ended since the last read of what is due began: the read may still have them. */
  #endedMeanwhile = new Set<string>();
  #reading: Promise<void> | null = null;

  constructor(name: string, webhook: () => Webhook | null, ports: AttemptPorts, signal: AbortSignal) {
    this.#name = name;
    this.#webhook = webhook;
    this.#ports = ports;
    this.#signal = signal;
  }

  /** Begins the attempts that are due, as far as there is room. */
  advance(): Promise<void> {
    this.#reading ??= this.#begin().finally(() => (this.#reading = null));
    return this.#reading;
  }

  /** Whether nothing of it runs. */
  get isIdle(): boolean {
    return this.#reading === null && this.#running.size === 0;
  }

  /** Resolves when no attempt runs any more. */
  async ended(): Promise<void> {
    await this.#reading;
    await Promise.all(this.#running.values());
  }

  async #begin(): Promise<void> {
    if (this.#webhook() === null || this.#running.size >= maxInFlight) return;
    this.#endedMeanwhile = new Set();
    try {
      const due = await this.#ports.deliveries.listDue(this.#name, maxInFlight + this.#running.size);
      for (const delivery of due) {
        const { id } = delivery.event;
        const webhook = this.#webhook();
        if (webhook === null || this.#running.size >= maxInFlight) return;
        if (this.#running.has(id) || this.#endedMeanwhile.has(id)) continue;
        this.#running.set(id, this.#run(webhook, delivery));
      }
    } catch (error) {
      if (!this.#signal.aborted)
        this.#ports.onFault('events for webhooks can not be read: they are sent later', error);
    }
  }

  async #run(webhook: Webhook, delivery: DueDelivery): Promise<void> {
    const { id } = delivery.event;
    const hasEnded = await this.#attempt(webhook, delivery);
    this.#running.delete(id);
    this.#endedMeanwhile.add(id);
    // The next event of the subject is due at once.
    if (hasEnded) void this.advance();
  }

  /** Sends an event. One that can't be written, as of a later version, fails alone: thrown, it would end the process. */
  async #send(webhook: Webhook, event: StoredEvent): Promise<SendResult> {
    try {
      return await webhook.send(event.id, writeEvent(event), this.#signal);
    } catch (error) {
      this.#ports.onFault('an event could not be written', error, { event: event.id, type: event.type });
      return { kind: 'failed', reason: 'the event could not be written', retryAfterMs: null };
    }
  }

  /** Makes one attempt and writes its result; resolves with whether the delivery has ended. */
  async #attempt(webhook: Webhook, delivery: DueDelivery): Promise<boolean> {
    const { deliveries, random, onResult, onFault } = this.#ports;
    const { event } = delivery;
    const result = await this.#send(webhook, event);
    if (result.kind === 'interrupted') return false;
    if (result.kind === 'delivered') {
      onResult(this.#name, 'delivered');
      return this.#write(() => deliveries.end(delivery, this.#name, 'delivered', `status ${result.status}`));
    }
    const failures = delivery.attempts + 1;
    const { reason, retryAfterMs } = result;
    const fields = { webhook: this.#name, event: event.id, type: event.type };
    onResult(this.#name, 'failed');
    if (failures >= maxAttempts) {
      onResult(this.#name, 'dead');
      onFault('event given up: its webhook did not accept it for three days', reason, fields);
      return this.#write(() => deliveries.end(delivery, this.#name, 'dead', reason));
    }
    if (failures === 1) onFault('webhook did not accept an event: it is sent again', reason, fields);
    const delayMs = retryDelayMs(failures, retryAfterMs, random());
    await this.#write(() => deliveries.retry(delivery, this.#name, delayMs, reason));
    return false;
  }

  /** Writes a result until the database takes it: otherwise the event would be sent again at once. */
  async #write(work: () => Promise<void>): Promise<boolean> {
    const pause = createPause(this.#ports.clock, writeAgainMs, this.#signal);
    for (;;) {
      try {
        await work();
        return true;
      } catch (error) {
        if (this.#signal.aborted) return false;
        this.#ports.onFault('the result of a delivery could not be written: it is tried again', error);
      }
      try {
        await pause();
      } catch {
        return false;
      }
    }
  }
}
