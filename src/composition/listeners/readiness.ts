import type { Workers } from '../../domain/ports/workers.ts';
import type { Ports } from '../../pipeline/ports.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { StorageServices } from '../storage/storage-services.ts';

/** The reason why this process can't take requests now; `null` when it can. */
export async function whyNotReady(
  { inFlight, models }: Ports,
  { writeCheck, engine }: StorageServices,
  modelProblem: () => string | null,
): Promise<string | null> {
  if (!inFlight.accepting) return 'draining';
  if (inFlight.isLeaving) return 'shutting down';
  const writeFault = await writeCheck.fault();
  if (writeFault !== null) return `the database does not accept writes: ${writeFault}`;
  if (engine.impaired !== null) return engine.impaired;
  if (!isRefusal(await models.list())) return null;
  const problem = modelProblem();
  return `no list of models from the upstream yet${problem === null ? '' : `: ${problem}`}`;
}

/** The reason why none of the processes on a port can take requests; any of them may be asked for it. */
export async function whyNoneReady(
  own: Promise<string | null>,
  workers: Workers | null,
): Promise<string | null> {
  const reason = await own;
  return reason === null || workers === null || !(await workers.isAnyReady()) ? reason : null;
}
