import type { Deliveries } from '../../domain/ports/outbox.ts';
import type { LeavableDuty } from '../../domain/ports/shared-changes.ts';
import type { Webhook } from '../../domain/ports/webhooks.ts';
import { givenUpMs, keptMs } from '../../domain/webhook-retries.ts';
import { repeat } from '../repeat.ts';
import { DeliveryLine } from './delivery-line.ts';
import type { LinePorts } from './delivery-line.ts';

/** How often new events are looked for, in milliseconds: an event is sent about as long after it happened. */
const lookMs = 1_000;

/** How often old deliveries are removed, in milliseconds. */
const cleanMs = 3_600_000;

/** How often the age of the oldest waiting event is read, in milliseconds. */
const ageMs = 15_000;

/** What deliveries need. */
interface DeliveryPorts extends LinePorts {
  readonly deliveries: Deliveries;
  /** Resolves when the database can be used; rejects when it never can be. */
  readonly ready: Promise<void>;
  /** Those of the config in force. */
  readonly webhooks: () => readonly Webhook[];
  /** The deliveries, where processes share the database: one of them makes all. */
  readonly duty: LeavableDuty | null;
}

/** The deliveries of events to webhooks. */
export interface WebhookDelivery {
  /** The age of the oldest event that waits, in milliseconds; `null` without webhooks, and where another process delivers. */
  oldestAgeMs(): number | null;
  /** Interrupts the attempts that run, whose events are sent again by the next process. Resolves when nothing runs any more. */
  stop(): Promise<void>;
}

/**
 * Delivers events: those of one subject in their order, each until its receiver has accepted it or it is given up. An event
 * may be sent more than once, always with the same id. The result of an attempt is written until the database takes it.
 */
export function deliverWebhooks(ports: DeliveryPorts): WebhookDelivery {
  const { deliveries, clock, webhooks, duty, onFault } = ports;
  const stopping = new AbortController();
  const { signal } = stopping;
  const lines = new Map<string, DeliveryLine>();
  let isOurs = false;
  let oldest: number | null = null;
  let agedMs = Number.NEGATIVE_INFINITY;
  let cleanedMs = Number.NEGATIVE_INFINITY;

  const subscriptions = () => webhooks().map(({ name, types }) => ({ name, types }));
  const find = (name: string): Webhook | null =>
    isOurs && !signal.aborted ? (webhooks().find((webhook) => webhook.name === name) ?? null) : null;
  const lineOf = (name: string): DeliveryLine => {
    const line = lines.get(name) ?? new DeliveryLine(name, () => find(name), ports, signal);
    lines.set(name, line);
    return line;
  };
  /** Does nothing without webhooks, and leaves the duty to a process that has some: its config may be in force earlier. */
  const rest = async (): Promise<void> => {
    oldest = null;
    if (duty === null || !isOurs) return;
    await duty.giveUp();
    isOurs = false;
  };
  const look = async (): Promise<void> => {
    try {
      const needsCleaning = clock.monotonicMs() - cleanedMs >= cleanMs;
      if (webhooks().length === 0 && !needsCleaning) return await rest();
      isOurs = duty === null || (await duty.isOurs());
      if (!isOurs || signal.aborted) return void (oldest = null);
      while ((await deliveries.route(subscriptions())) > 0 && !signal.aborted);
      for (const { name } of webhooks()) void lineOf(name).advance();
      for (const [name, line] of lines) if (find(name) === null && line.isIdle) lines.delete(name);
      if (clock.monotonicMs() - agedMs >= ageMs) {
        agedMs = clock.monotonicMs();
        const names = webhooks().map(({ name }) => name);
        oldest = names.length === 0 ? null : ((await deliveries.oldestAgeMs(names)) ?? 0);
      }
      if (!needsCleaning) return;
      cleanedMs = clock.monotonicMs();
      await deliveries.clean(subscriptions(), { givenUpMs, keptMs });
    } catch (error) {
      if (!signal.aborted) onFault('events for webhooks can not be read: they are sent later', error);
    }
  };
  let looking: (() => Promise<void>) | null = null;
  const start = (): void => {
    if (!signal.aborted) looking = repeat(look, { firstMs: 0, delayMs: lookMs }, clock, signal);
  };
  ports.ready.then(start, () => {});
  return {
    oldestAgeMs: () => oldest,
    async stop() {
      stopping.abort(new Error('the deliveries are stopping'));
      await looking?.();
      await Promise.all([...lines.values()].map((line) => line.ended()));
    },
  };
}
