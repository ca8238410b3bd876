import { z } from 'zod';
import { isRefusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import type { Delivery } from '../../domain/ports/outbox.ts';
import type { WebhookManagement, WebhookReport, WebhookTest } from '../../operations/manage-webhooks.ts';
import { check, checkQuery, pageQuery, pathIdOf, readJson, unknownCursor } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentList } from '../present/list.ts';
import { sendAnswer, sendRefusal } from '../answers/respond.ts';
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
  const router = createRouter();
  router.get('/', async (_request, response) => {
    sendAnswer(response, 200, presentList((await webhooks.list()).map(presentWebhook), null));
  });
  router.all('/', methodNotAllowed('GET'));
  router.get('/deliveries', async (request, response) => {
    const query = checkQuery(request, deliveryQuery, 'This list');
    if (isRefusal(query)) return sendRefusal(response, query);
    const { limit, before, ...filter } = query;
    // The cursor is the number of a delivery.
    if (before !== undefined && !/^\d{1,15}$/.test(before)) return sendRefusal(response, unknownCursor());
    const page = await webhooks.deliveries(filter, limit, before === undefined ? null : Number(before));
    const next = page.next === null ? null : String(page.next);
    sendAnswer(response, 200, presentList(page.deliveries.map(presentDelivery), next));
  });
  router.all('/deliveries', methodNotAllowed('GET'));
  router.post('/events/:id/resend', async (request, response) => {
    const body = await readJson(request, response);
    const input = isRefusal(body) ? body : check(body, resending);
    if (isRefusal(input)) return sendRefusal(response, input);
    const resent = await webhooks.resend(pathIdOf(request), input.webhook ?? null);
    sendAnswer(response, 200, isRefusal(resent) ? resent : { id: pathIdOf(request), webhooks: resent });
  });
  router.all('/events/:id/resend', methodNotAllowed('POST'));
  router.post('/:id/test', async (request, response) => {
    const tested = await webhooks.test(pathIdOf(request));
    if (isRefusal(tested)) return sendRefusal(response, tested);
    sendAnswer(response, 200, presentTest(pathIdOf(request), tested));
  });
  router.all('/:id/test', methodNotAllowed('POST'));
  return router;
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
