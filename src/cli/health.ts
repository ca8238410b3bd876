import { findAdminListener } from './find-gateway.ts';

/** How long a gateway may take to answer, in milliseconds. */
const timeoutMs = 4_000;

/**
 * Asks the gateway of a config file, or of the environment, whether it is alive or, with `ready`, whether it can take
 * requests. Returns a line that says so; throws if it is not, or does not answer.
 */
export async function checkHealth(configFile: string | undefined, ready: boolean): Promise<string> {
  const { url } = await findAdminListener(configFile);
  const address = `${url}${ready ? '/readyz' : '/healthz'}`;
  const response = await fetch(address, { signal: AbortSignal.timeout(timeoutMs), redirect: 'manual' }).catch(
    (error: unknown) => {
      throw new Error(`${address}: ${reasonOf(error)}`);
    },
  );
  const { status, reason } = (await response.json().catch(() => ({}))) as {
    status?: string;
    reason?: string;
  };
  const state = `${status ?? `status ${response.status}`}${reason === undefined ? '' : `: ${reason}`}`;
  if (response.status === 404)
    throw new Error(`${address}: status 404: this is no gateway; is another program at this port?`);
  if (!response.ok || status === undefined) throw new Error(`${address}: ${state}`);
  return `${address}: ${state}`;
}

function reasonOf(error: unknown): string {
  if ((error as Error).name === 'TimeoutError') return `no answer within ${timeoutMs / 1_000} s`;
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: string };
  return code === 'ECONNREFUSED' ? 'no gateway listens there' : `no answer (${code ?? 'unknown'})`;
}
