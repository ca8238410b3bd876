import { networksOf } from '../../config/schema/client-values.ts';
import type { Config } from '../../config/schema/schema.ts';
import { readClientAddresses } from '../../http/heads/client-addresses.ts';
import type { ClientAddresses } from '../../http/heads/client-addresses.ts';
import { readCrossOrigin } from '../../http/heads/cross-origin.ts';
import type { CrossOrigin } from '../../http/heads/cross-origin.ts';
import { createUnreadWatch } from '../../http/connections/unread-watch.ts';
import { prepareAnswers } from '../../http/answers/prepare-answers.ts';
import type { Prepare } from '../../http/answers/prepare-answers.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { nextId } from '../next-id.ts';
import type { ProcessServices } from '../process-services.ts';

/** What one config says of who calls: proxies, addresses and web pages. */
export interface ClientServices {
  /** The first handler of every request of clients. */
  readonly prepare: Prepare;
  readonly addresses: ClientAddresses;
  /** `null` where no web page may call the gateway. */
  readonly crossOrigin: CrossOrigin | null;
}

/** Addresses are logged where the config says so, or names proxies that report them. */
export function composeClientServices(
  { trustedProxies, logAddresses, corsOrigins }: Config['server'],
  { preparePublic }: Pick<ProcessServices, 'preparePublic'>,
): ClientServices {
  const crossOrigin = readCrossOrigin(corsOrigins);
  return {
    prepare: preparePublic(crossOrigin),
    addresses: readClientAddresses(networksOf(trustedProxies), logAddresses ?? trustedProxies.length > 0),
    crossOrigin,
  };
}

/** The first handlers of all requests, which share one watch for answers that are not read. */
export function firstHandlers(
  clock: Clock,
  unreadMs: number,
  isClosed: () => boolean,
): Pick<ProcessServices, 'prepare' | 'preparePublic'> {
  const watchUnread = createUnreadWatch(clock, unreadMs);
  const preparePublic: ProcessServices['preparePublic'] = (crossOrigin) =>
    prepareAnswers(nextId, watchUnread, isClosed, crossOrigin);
  return { prepare: preparePublic(null), preparePublic };
}
