import type { PresentedDelivery, PresentedTest, PresentedWebhook } from '../http/admin/webhooks.ts';
import type { PresentedList } from '../http/present/list.ts';
import { callAdmin, readList } from './admin-client.ts';
import { writeTable } from './output.ts';
import type { Json } from './output.ts';

/** The options of `deliveries`, as commander names them. */
export interface DeliveryOptions extends Json {
  readonly webhook?: string;
  readonly state?: string;
  readonly limit?: number;
}

/** The options of `resend`. */
export interface ResendOptions extends Json {
  readonly webhook?: string;
}

/** How many deliveries a table has without `--limit`. */
const usualRows = 50;

/** Lists the webhooks of the config, as a table or JSON. */
export async function listWebhooks({ json }: Json): Promise<string> {
  const { data } = await callAdmin<PresentedList<PresentedWebhook>>('GET', '/admin/webhooks');
  if (json) return JSON.stringify(data);
  if (data.length === 0) return 'the config has no webhooks';
  return writeTable(
    ['NAME', 'RECEIVER', 'WAITING', 'DEAD', 'EVENTS'],
    data.map(({ name, origin, events, waiting, dead }) => [
      name,
      origin,
      String(waiting),
      String(dead),
      events.join(', '),
    ]),
    { right: ['WAITING', 'DEAD'], cut: ['EVENTS'] },
  );
}

/** Lists deliveries, newest first, as a table or JSON. */
export async function listDeliveries({
  json,
  limit = usualRows,
  ...filter
}: DeliveryOptions): Promise<string> {
  const query = new URLSearchParams({ ...filter }).toString();
  const deliveries = await readList<PresentedDelivery>('/admin/webhooks/deliveries', query, limit);
  if (json) return JSON.stringify(deliveries);
  if (deliveries.length === 0) return 'no deliveries';
  return writeTable(
    ['EVENT', 'TYPE', 'WEBHOOK', 'STATE', 'RESULT'],
    deliveries.map(({ event_id: id, type, webhook, state, result }) => [
      id,
      type,
      webhook,
      state,
      result ?? '-',
    ]),
    { cut: ['WEBHOOK'] },
  );
}

/** Sends a test event; a failure is an error of the command. */
export async function testWebhook(name: string, { json }: Json): Promise<string> {
  const path = `/admin/webhooks/${encodeURIComponent(name)}/test`;
  const tested = await callAdmin<PresentedTest>('POST', path);
  if (!tested.delivered) process.exitCode = 1;
  if (json) return JSON.stringify(tested);
  return `${name} has ${tested.delivered ? '' : 'not '}accepted ${tested.event_id}: ${tested.result}`;
}

/** Has an event delivered again. */
export async function resendEvent(event: string, { json, webhook }: ResendOptions): Promise<string> {
  const path = `/admin/webhooks/events/${encodeURIComponent(event)}/resend`;
  const body = webhook === undefined ? {} : { webhook };
  const resent = await callAdmin<{ webhooks: readonly string[] }>('POST', path, body);
  return json ? JSON.stringify(resent) : `${event} is sent again to ${resent.webhooks.join(', ')}`;
}
