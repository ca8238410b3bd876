import { json as readJson } from 'node:stream/consumers';
import { readVariable } from '../../config/environment.ts';
import type { UpstreamReport } from '../../doctor/report.ts';
import { callAdmin, openAdmin } from '../admin-client.ts';
import { findAdminListener } from '../find-gateway.ts';
import { isConnectionFault, sendRequest } from '../send-request.ts';

/** How long it is waited for a gateway that may not be there, in milliseconds. */
const probeMs = 2_000;

/** The gateway that other commands would call. */
interface FoundGateway {
  /** The address of its admin listener. */
  readonly url: string;
  /**
   * Has it examine the upstreams of its config one after the other; a model of `null` asks the usual one of each. `null`
   * where nothing answers.
   */
  readonly examine: ((model: string | null) => AsyncGenerator<UpstreamReport>) | null;
}

/** Finds the gateway that runs here. That none does is no error, unless `TEXTGATE_ADMIN_URL` names it. */
export async function findRunningGateway(): Promise<FoundGateway> {
  const { url } = await findAdminListener();
  const isNamed = readVariable(process.env, 'TEXTGATE_ADMIN_URL') !== undefined;
  return { url, examine: isNamed || (await answers(url)) ? examineRunning : null };
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

async function* examineRunning(model: string | null): AsyncGenerator<UpstreamReport> {
  const { data } = (await callAdmin('GET', '/admin/upstreams')) as {
    readonly data: readonly { readonly name: string }[];
  };
  for (const { name } of data) {
    const body = JSON.stringify(model === null ? {} : { model });
    const path = `/admin/upstreams/${encodeURIComponent(name)}/doctor`;
    const { upstreams } = (await readJson(await openAdmin(path, { method: 'POST', body }))) as {
      readonly upstreams: readonly UpstreamReport[];
    };
    yield* upstreams;
  }
}
