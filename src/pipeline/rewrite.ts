import type { OpenedAnswer } from './attempts/first-part.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { ReceivedAnswer } from './attempts/received-answer.ts';
import type { AttemptEnding } from './results.ts';

/**
 * Sends an answer's text to its clients as it is read, and returns how it ended. Each read becomes one write, at the
 * moment of its arrival while all clients keep up; the slowest of them slows the upstream. The last frames are not sent
 * here but after the settlement. `onSlow` is called when a client does not keep up for the first time.
 */
export async function rewrite(
  answer: OpenedAnswer,
  received: ReceivedAnswer,
  { deliveries }: Pick<Exchange, 'deliveries'>,
  { clock, fastPath }: Pick<Ports, 'clock' | 'fastPath'>,
  onSlow: () => void,
): Promise<AttemptEnding> {
  let hasWaited = false;
  /** Returns whether more may be sent without a wait. */
  const send = (deltas: readonly string[]): boolean => {
    // After the last client has disconnected, the answer is read on for its usage alone.
    if (deliveries.every(({ hasLeft }) => hasLeft)) return true;
    received.add(deltas, clock.monotonicMs());
    let keepUp = fastPath;
    for (const delivery of deliveries) keepUp = delivery.send(deltas) && keepUp;
    return keepUp;
  };
  const { first } = answer;
  if (first.deltas.length > 0) send(first.deltas);
  let { ending } = first;
  for (;;) {
    for (const delivery of deliveries) {
      const drained = delivery.drained();
      if (drained === null) continue;
      if (!hasWaited) onSlow();
      hasWaited = true;
      await drained;
    }
    if (ending !== null) break;
    ending = await answer.readOn(send);
  }
  if (ending.kind === 'finished') for (const delivery of deliveries) delivery.open();
  return ending;
}
