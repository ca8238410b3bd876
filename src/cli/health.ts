import { json } from 'node:stream/consumers';
import { findAdminListener } from './find-gateway.ts';
import { isConnectionFault, isOk, sendRequest } from './send-request.ts';

/** How long a gateway may take to answer, in milliseconds. */
const timeoutMs = 4_000;

/**
 * Asks the gateway of a config file, or of the environment, whether it is alive or, with `ready`, whether it can take
 * requests. Returns a line that says so; throws if it is not, or does not answer.
 */
export async function checkHealth(configFile: string | undefined, ready: boolean): Promise<string> {
  const { url } = await findAdminListener(configFile);
  const address = `${url}${ready ? '/readyz' : '/healthz'}`;
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await sendRequest(address, { signal }).catch((error: unknown) => {
    throw isConnectionFault(error) ? new Error(`${address}: ${reasonOf(error)}`) : error;
  });
  const { status, reason } = (await json(response).catch(() => ({}))) as {
    status?: string;
    reason?: string;
  };
  const state = `${status ?? `status ${response.statusCode}`}${reason === undefined ? '' : `: ${reason}`}`;
  if (response.statusCode === 404)
    throw new Error(`${address}: status 404: this is no gateway; is another program at this port?`);
  if (!isOk(response) || status === undefined) throw new Error(`${address}: ${state}`);
  return `${address}: ${state}`;
}

function reasonOf({ code }: { readonly code: string }): string {
  if (code === 'ABORT_ERR') return `no answer within ${timeoutMs / 1_000} s`;
  return code === 'ECONNREFUSED' ? 'no gateway listens there' : `no answer (${code})`;
}
