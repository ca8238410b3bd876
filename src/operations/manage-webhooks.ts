import { testEventType, writeEvent } from '../domain/events.ts';
import type { Clock, NextId } from '../domain/ports/clock.ts';
import type { ManagedDeliveries, Webhook } from '../domain/ports/outbox.ts';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** A webhook as operators see it. */
export interface WebhookReport extends Pick<Webhook, 'name' | 'origin' | 'types'> {
  /** Events that wait for their delivery, and those that were given up and are still kept. */
  readonly waiting: number;
  readonly dead: number;
}

/** What came of a test: the status of the answer, or the reason why there is none. */
export interface WebhookTest {
  readonly eventId: string;
  readonly isDelivered: boolean;
  readonly result: string;
}

/** What an operator does with webhooks. */
export interface WebhookManagement {
  list(): Promise<readonly WebhookReport[]>;
  /** Whether the config has a webhook of this name. */
  has(name: string): boolean;
  /** A page of deliveries, newest first. */
  deliveries: ManagedDeliveries['list'];
  /** Sends one event at once, which is kept nowhere. */
  test(name: string): Promise<WebhookTest | Refusal>;
  /** Has an event delivered again, to one webhook or to all of the config that got it; resolves with their names. */
  resend(eventId: string, webhook: string | null): Promise<readonly string[] | Refusal>;
}

interface WebhookManagementPorts {
  readonly deliveries: ManagedDeliveries;
  readonly webhooks: readonly Webhook[];
  readonly nextId: NextId;
  readonly clock: Clock;
}

/** Lets an operator see, test and repeat deliveries. */
export function createWebhookManagement({
  deliveries,
  webhooks,
  nextId,
  clock,
}: WebhookManagementPorts): WebhookManagement {
  const find = (name: string): Webhook | undefined => webhooks.find((found) => found.name === name);
  return {
    async list() {
      if (webhooks.length === 0) return [];
      const counts = await deliveries.count(webhooks.map(({ name }) => name));
      return webhooks.map(({ name, origin, types }, at) => ({
        name,
        origin,
        types,
        ...(counts[at] ?? { waiting: 0, dead: 0 }),
      }));
    },
    has: (name) => find(name) !== undefined,
    deliveries: (filter, limit, before) => deliveries.list(filter, limit, before),
    async test(name) {
      const webhook = find(name);
      if (webhook === undefined) return unknownWebhook();
      const event = {
        id: `evt_${nextId()}`,
        type: testEventType,
        createdAtMs: clock.now(),
        data: { webhook: name },
      };
      const result = await webhook.send(event.id, writeEvent(event), new AbortController().signal);
      return {
        eventId: event.id,
        isDelivered: result.kind === 'delivered',
        result:
          result.kind === 'delivered'
            ? `status ${result.status}`
            : result.kind === 'failed'
              ? result.reason
              : 'interrupted',
      };
    },
    async resend(eventId, webhook) {
      if (webhook !== null && find(webhook) === undefined) return unknownWebhook();
      const names = webhook === null ? webhooks.map(({ name }) => name) : [webhook];
      const resent = await deliveries.resend(eventId, names);
      return resent.length > 0
        ? resent
        : refuse(
            'event_not_found',
            webhook === null
              ? 'No delivery of an event with this id is kept for a webhook of the config. The list of deliveries has all of them.'
              : 'No delivery of an event with this id is kept for this webhook. The list of deliveries has all of them.',
          );
    },
  };
}

/** The refusal of a name that the config does not have, or has no more: an event would wait for it until it is given up. */
function unknownWebhook(): Refusal {
  return refuse('webhook_not_found', 'No webhook has this name. The list of webhooks has all of them.');
}
