import type { RequestKind } from '../domain/consumption.ts';
import type { Interruption } from '../domain/interruption.ts';
import { conclude } from './answer-client.ts';
import { watchDeparture } from './departure.ts';
import { interruptedEnding, unexpectedEnding } from './endings.ts';
import { beginExchange } from './exchange.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';
import { settle } from './settle.ts';

/**
 * One request, one way: `carry` brings it as far as it comes, it is settled exactly once, and only then does the client
 * see the end. Never rejects.
 */
export async function conduct(
  kind: RequestKind,
  client: ClientConnection,
  ports: Ports,
  carry: (exchange: Exchange) => Promise<Ending>,
): Promise<void> {
  const exchange = beginExchange(kind, client, ports);
  ports.inFlight.add(exchange);
  const unwatch = watchDeparture(exchange, ports.clock);
  ports.telemetry.exchangeBegan(kind);
  try {
    const carried = await carry(exchange).catch((error: unknown) => {
      ports.telemetry.fault('an exchange failed unexpectedly', error);
      return unexpectedEnding();
    });
    const ending = unlessInterrupted(carried, exchange);
    await settle(ending, exchange, ports);
    await conclude(ending, exchange, ports);
  } catch (error) {
    ports.telemetry.fault('an exchange could not be concluded', error);
    await client.tearDown('');
  } finally {
    unwatch();
    ports.inFlight.remove(exchange);
  }
}

/** A client that left, or a server that drains, explains every failure that came of it. */
function unlessInterrupted(ending: Ending, { interruption: { signal }, notes }: Exchange): Ending {
  const usage = 'refusal' in ending ? ending.usage : ending.finish.usage;
  if (signal.aborted && 'refusal' in ending) return interruptedEnding(signal.reason as Interruption, usage);
  return notes.clientLeft && !signal.aborted ? interruptedEnding('client_closed', usage) : ending;
}
