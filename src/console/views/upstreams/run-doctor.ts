import type { presentCheck, presentDoctor } from '../../../http/present/doctor.ts';
import { AdminError, adminPath, inPath, refusalOf } from '../../api/admin-api.ts';
import { openEventStream } from '../../api/event-stream.ts';

/** A check of an upstream. */
export type Check = ReturnType<typeof presentCheck>;

type Report = ReturnType<typeof presentDoctor>;

/** How an upstream is checked. */
interface Options {
  /** The model's name there; `null` for the usual one. */
  readonly model: string | null;
  readonly signal: AbortSignal;
  /** Called with each check as it is done. */
  readonly onCheck: (check: Check) => void;
}

/** Has the gateway check an upstream. Resolves with all checks; throws what the gateway says against it. */
export async function runDoctor(
  name: string,
  { model, signal, onCheck }: Options,
): Promise<readonly Check[]> {
  const response = await fetch(adminPath(`upstreams/${inPath(name)}/doctor`), {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify(model === null ? {} : { model }),
    signal,
  }).catch((error: unknown) => {
    throw signal.aborted ? error : new AdminError('The gateway can not be reached.');
  });
  if (!response.ok) throw await refusalOf(response);
  const events = openEventStream();
  const reader = response.body?.getReader();
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    for (const { type, name: event, text } of events.read(read.value)) {
      if (type !== 'event') continue;
      const value: unknown = JSON.parse(text);
      if (event === 'check') onCheck(value as Check);
      if (event === 'report') return (value as Report).upstreams[0]?.checks ?? [];
      if (event === 'error') throw new AdminError((value as { error: { message: string } }).error.message);
    }
  }
  throw new AdminError('The connection to the gateway ended before the last check.');
}
