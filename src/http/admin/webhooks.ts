import { z } from 'zod';
import { isRefusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import type { Delivery } from '../../domain/ports/outbox.ts';
import type { WebhookManagement, WebhookReport, WebhookTest } from '../../operations/manage-webhooks.ts';
import { checkQuery, pageQuery, pathIdOf, readInput, unknownCursor } from '../checked-input.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentList } from '../present/list.ts';
import { addRoutes } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';

/** The states of deliveries, as a filter. */
const states = ['waiting', 'delivered', 'dead'] as const;

/** The query and the body of these routes. */
export const deliveryQuery = pageQuery.extend({
  webhook: storedText.optional(),
  state: z.enum(states).optional(),
});
export const resending = z.strictObject({ webhook: storedText.optional() });

/** The routes under `/admin/webhooks`: the webhooks, their deliveries, a test, and the repetition of an event. */
export function createWebhookRoutes(webhooks: WebhookManagement): Router {
  return addRoutes(createRouter(), {
    'GET /': async () => presentList((await webhooks.list()).map(presentWebhook), null),
    'GET /deliveries': async (request) => {
      const query = checkQuery(request, deliveryQuery, 'This list');
      if (isRefusal(query)) return query;
      const { limit, before, ...filter } = query;
      // The cursor is the number of a delivery.
      if (before !== undefined && !/^\d{1,15}$/.test(before)) return unknownCursor();
      const page = await webhooks.deliveries(filter, limit, before === undefined ? null : Number(before));
      const next = page.next === null ? null : String(page.next);
      return presentList(page.deliveries.map(presentDelivery), next);
    },
    'POST /events/:id/resend': async (request, response) => {
      const input = await readInput(request, response, resending);
      if (isRefusal(input)) return input;
      const resent = await webhooks.resend(pathIdOf(request), input.webhook ?? null);
      return isRefusal(resent) ? resent : { id: pathIdOf(request), webhooks: resent };
    },
    'POST /:id/test': async (request) => {
      const tested = await webhooks.test(pathIdOf(request));
      return isRefusal(tested) ? tested : presentTest(pathIdOf(request), tested);
    },
  });
}

/** A webhook as JSON. */
export type PresentedWebhook = ReturnType<typeof presentWebhook>;

function presentWebhook({ name, origin, types, waiting, dead }: WebhookReport) {
  return { name, origin, events: types, waiting, dead };
}

/** A delivery as JSON. */
export type PresentedDelivery = ReturnType<typeof presentDelivery>;

function presentDelivery({ event, webhook, state, attempts, dueAtMs, endedAtMs, result }: Delivery) {
  return {
    event_id: event.id,
    type: event.type,
    webhook,
    created_at: isoTime(event.createdAtMs),
    state,
    attempts,
    next_attempt_at: isoTime(dueAtMs),
    ended_at: isoTime(endedAtMs),
    result,
  };
}

/** What a test of a webhook has shown, as JSON. */
export type PresentedTest = ReturnType<typeof presentTest>;

function presentTest(webhook: string, { eventId, isDelivered, result }: WebhookTest) {
  return { webhook, event_id: eventId, delivered: isDelivered, result };
}
