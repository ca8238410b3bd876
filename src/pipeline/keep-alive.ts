import type { AnswerWriter } from '../protocol/answer-writer.ts';
import { deliver } from './answer-client.ts';
import type { Exchange, Ports } from './exchange.ts';

/** How long a stream's client hears nothing before it hears a comment, in milliseconds: proxies cut at 30 or 60 s. */
const maxSilenceMs = 15_000;

/**
 * Keeps a stream's client connected while its text is slow to come: a model that loads or thinks, whose thoughts are
 * not passed on. The first comment spends the status, so a failure after it is one inside the stream. It goes out only
 * once the record is begun, and not while the client has bytes to take. Disposing stops it.
 */
export function keepClientAlive(writer: AnswerWriter, exchange: Exchange, ports: Ports): Disposable {
  const { clock } = ports;
  const { notes } = exchange;
  if (writer.keepAlive === '') return { [Symbol.dispose]() {} };
  const beat = (): void => {
    const silentMs = clock.monotonicMs() - (notes.sentMs ?? exchange.arrivedMs);
    const due = silentMs >= maxSilenceMs;
    if (due && notes.recorded && !notes.sending)
      deliver(writer.keepAlive, writer, exchange, ports).catch((error: unknown) =>
        ports.telemetry.fault('a client could not be kept alive', error),
      );
    cancel = clock.schedule(due ? maxSilenceMs : maxSilenceMs - silentMs, beat);
  };
  let cancel = clock.schedule(maxSilenceMs, beat);
  return { [Symbol.dispose]: () => cancel() };
}
