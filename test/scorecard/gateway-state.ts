import type { ServedProcess } from '../chaos/served-process.ts';

/** The metrics of a gateway, as text. */
async function metricsOf({ adminUrl }: Pick<ServedProcess, 'adminUrl'>): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`)).text();
}

/** The sum of all series of a metric. */
export function metricSum(metrics: string, name: string): number {
  const lines = metrics.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}

/** Requests in progress, from its metrics. */
export async function requestsInFlight(served: Pick<ServedProcess, 'adminUrl'>): Promise<number> {
  return metricSum(await metricsOf(served), 'textgate_requests_in_flight');
}
