import type { Constructors } from './metric-constructors.ts';

/** What can become of an attempt to deliver an event. */
export const deliveryResults = ['delivered', 'failed', 'dead'] as const;

/** Events and their deliveries to webhooks. */
export function eventInstruments({ counterBy, gauge }: Constructors) {
  return {
    webhookDeliveries: counterBy(
      ['webhook', 'result'],
      'textgate_webhook_deliveries_total',
      'Attempts to deliver an event to a webhook, by result: delivered, failed, and dead for one that was the last.',
    ),
    oldestEvent: gauge(
      'textgate_outbox_oldest_age_seconds',
      'Age of the oldest event that waits for its delivery; 0 when none waits, absent without webhooks.',
    ),
  };
}
