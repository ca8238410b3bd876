import { readVariable } from '../config/environment.ts';
import { findAdminListener } from './find-gateway.ts';
import { isConnectionFault, sendRequest } from './send-request.ts';

/** How long it is waited for a gateway that may not be there, in milliseconds. */
const probeMs = 2_000;

/** Finds the gateway that other commands would call. That none answers is no error, unless `TEXTGATE_ADMIN_URL` names it. */
export async function findRunningGateway(): Promise<{ readonly url: string; readonly isThere: boolean }> {
  const { url } = await findAdminListener();
  const isNamed = readVariable(process.env, 'TEXTGATE_ADMIN_URL') !== undefined;
  return { url, isThere: isNamed || (await answers(url)) };
}

async function answers(url: string): Promise<boolean> {
  try {
    (await sendRequest(`${url}/healthz`, { signal: AbortSignal.timeout(probeMs) })).destroy();
    return true;
  } catch (error) {
    if (isConnectionFault(error)) return false;
    throw error;
  }
}
