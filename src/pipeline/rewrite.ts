import type { OpenedAnswer } from './attempt.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { ReceivedAnswer } from './received-answer.ts';
import type { AttemptEnding } from './results.ts';

/**
 * Sends an answer's text to its clients as it is read, and returns how it ended. Each read becomes one write. The last
 * frames are not sent here but after the settlement.
 */
export async function rewrite(
  answer: OpenedAnswer,
  received: ReceivedAnswer,
  { deliveries }: Pick<Exchange, 'deliveries'>,
  { clock }: Pick<Ports, 'clock'>,
): Promise<AttemptEnding> {
  for (let part = answer.first; ; part = await answer.next()) {
    const { deltas, ending } = part;
    // After the last client has disconnected, the answer is read on for its usage alone.
    if (deltas.length > 0 && deliveries.some(({ hasLeft }) => !hasLeft)) {
      const nowMs = clock.monotonicMs();
      for (const delta of deltas) received.add(delta, nowMs);
      // One after the other begins at once; the slowest of them slows the upstream.
      await Promise.all(deliveries.map((delivery) => delivery.send(deltas)));
    }
    if (ending === null) continue;
    if (ending.kind === 'finished') for (const delivery of deliveries) delivery.open();
    return ending;
  }
}
