import { deliverWebhooks } from '../background/webhooks/deliver-webhooks.ts';
import { keepEventSettings } from '../background/webhooks/keep-event-settings.ts';
import { noteExpiringKeys } from '../background/webhooks/note-expiring-keys.ts';
import { watchOutages } from '../background/webhooks/watch-outages.ts';
import type { Config } from '../config/schema/schema.ts';
import { subjects } from '../domain/events.ts';
import type { EventType } from '../domain/events.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Outbox, Webhook } from '../domain/ports/outbox.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';
import { formatUsd } from '../shared/money.ts';
import { createDeliveries } from '../storage/outbox/deliveries.ts';
import { createOutbox, createUpstreamOutages } from '../storage/outbox/outbox.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { createWebhookClient } from '../transport/webhook-client.ts';
import type { ActiveConfig } from './active-config.ts';
import { proxyFor } from './upstreams/upstreams.ts';
import type { Surroundings } from './upstreams/upstreams.ts';
import { nextId } from './next-id.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** How long the connection to a receiver and its TLS handshake may take each, in milliseconds. */
const connectMs = 5_000;

/** Builds the senders of a config's webhooks; their connections are opened as those to upstreams. */
export function composeWebhooks({ webhooks }: Config, { files, findProxy }: Surroundings, clock: Clock) {
  const clients = Object.entries(webhooks).map(([name, { url, secret, events, tls, ...config }]) => {
    const client = createWebhookClient(
      {
        url,
        secrets: [...new Set(typeof secret === 'string' ? [secret] : secret)],
        connectMs,
        allowLinkLocal: false,
        proxy: proxyFor({ url, proxy: config.proxy }, findProxy),
        certificates: () => files.certificatesOfWebhook(name),
        serverName: tls?.serverName,
      },
      clock,
    );
    const webhook: Webhook = {
      name,
      origin: url.origin,
      types: [...new Set(events)],
      send: (...message) => client.send(...message),
    };
    return { webhook, client };
  });
  return {
    webhooks: clients.map(({ webhook }) => webhook),
    /** Resolves when the attempts that run now have ended: each within some seconds. */
    async idle(): Promise<void> {
      await Promise.all(clients.map(({ client }) => client.idle()));
    },
    /** Closes the connections to their receivers; attempts that still run break. */
    async close(): Promise<void> {
      await Promise.all(clients.map(({ client }) => client.close()));
    },
  };
}

/** The events of the process, and their deliveries. */
export type EventServices = ReturnType<typeof runEvents>;

interface EventTools {
  readonly active: () => ActiveConfig;
  readonly health: UpstreamHealth;
  readonly clock: Clock;
  readonly log: Pick<Log, 'fault'>;
  readonly metrics: Pick<Metrics, 'webhookDelivered'>;
}

/** Adds events to the outbox and delivers them; of processes that share a database, one delivers for all. */
export function runEvents(
  { engine, store, recovered, shared }: StorageServices,
  { active, health, clock, log, metrics }: EventTools,
) {
  const outbox = createOutbox(engine, nextId);
  const deliveries = createDeliveries(engine);
  const basics = { ready: recovered, clock, onFault: log.fault };
  const duty = shared?.deliveryDuty ?? null;
  const isWanted = (type: EventType): boolean => wants(active().webhooks, type);
  const delivery = deliverWebhooks({
    ...basics,
    deliveries,
    duty,
    random: Math.random,
    webhooks: () => active().webhooks,
    onResult: (webhook, result) => metrics.webhookDelivered(webhook, result),
  });
  const expiries = noteExpiringKeys({
    ...basics,
    outbox,
    duty,
    notices: () => (isWanted('key.expiring') ? active().expiryNoticesMs : []),
  });
  const outages = watchOutages({
    ...basics,
    health,
    outages: createUpstreamOutages(engine, () => store.owner(), nextId),
    watched: () => ({
      names: Object.keys(active().upstreamStates()),
      holdMs: active().upstreamDownMs,
      isWanted: isWanted('upstream.down') || isWanted('upstream.up'),
    }),
  });
  const settings = keepEventSettings(outbox, basics);
  return {
    deliveries,
    /** The age of the oldest event that waits, in milliseconds; `null` where there is none to show. */
    oldestAgeMs: () => delivery.oldestAgeMs(),
    /** Puts the settings of a config into force. */
    attach({ webhooks, lowBalanceNanos }: ActiveConfig): void {
      settings.set({
        lowBalanceNanos: wants(webhooks, 'balance.low') ? lowBalanceNanos : null,
        budgetLevels: wants(webhooks, 'budget.level'),
      });
    },
    /** Resolves once the database knows the settings, or could not be told for now. */
    stored: () => settings.stored(),
    /** Notes that a circuit of an upstream opened or closed. */
    circuitChanged: (upstream: string) => outages.changed(upstream),
    /** Notes what an audit found: the sum of all differences in nano-USD, and the number of faults. */
    audited(imbalanceNanos: number, faults: number): void {
      if (faults > 0 && isWanted('ledger.imbalance'))
        void addImbalance(outbox, { imbalanceNanos, faults, nowMs: clock.now() }, log.fault);
    },
    /** Resolves when nothing is sent, read or written any more. */
    async stop(): Promise<void> {
      await Promise.all([delivery.stop(), expiries.stop(), outages.stop(), settings.stop()]);
    },
  };
}

function wants(webhooks: readonly Webhook[], type: EventType): boolean {
  return webhooks.some(({ types }) => types.includes(type));
}

/** The length of the day in a time in ISO 8601. */
const dayLength = 10;

/** Adds the event of an imbalance, once a day for the same sum: audits find it every ten minutes. */
async function addImbalance(
  outbox: Outbox,
  found: { readonly imbalanceNanos: number; readonly faults: number; readonly nowMs: number },
  onFault: ReportFault,
): Promise<void> {
  const { imbalanceNanos, faults, nowMs } = found;
  const day = new Date(nowMs).toISOString().slice(0, dayLength);
  try {
    await outbox.add([
      {
        name: `ledger.imbalance:${imbalanceNanos}:${day}`,
        type: 'ledger.imbalance',
        subject: subjects.ledger,
        data: { imbalance: formatUsd(imbalanceNanos), faults },
      },
    ]);
  } catch (error) {
    onFault('the event of an imbalance could not be added: the next audit adds it', error);
  }
}
