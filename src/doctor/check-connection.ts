import { count } from '../shared/count.ts';
import type { UpstreamFault } from '../domain/ports/upstreams.ts';
import { failedCall } from './explain.ts';
import { ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import { isDemo } from './target.ts';
import type { DoctorPorts, Target } from './target.ts';

const dayMs = 86_400_000;

/** The number of days before its end at which a certificate should have been renewed. */
const leastDays = 14;

/**
 * Checks the way to an upstream: its host's addresses, a TCP connection, TLS. Behind a proxy, the first two are those of
 * the proxy. The first fault ends it.
 */
export async function checkConnection(target: Target, ports: DoctorPorts): Promise<readonly Check[]> {
  const { url, source } = target;
  const { proxy } = source.target;
  const whose = proxy === null ? '' : ` (the proxy ${proxy.address} of ${proxy.name})`;
  const { network, clock } = ports;
  if (isDemo(target)) return [skipped('connection', 'the built-in demo has no connection')];
  const timed = async <Result>(
    id: string,
    work: Promise<Result | UpstreamFault>,
    describe: (result: Result, ms: number) => Check,
  ): Promise<Check> => {
    const startedMs = clock.monotonicMs();
    const result = await work;
    const ms = clock.monotonicMs() - startedMs;
    if (isFault(result)) return { ...failedCall(id, { method: 'GET', path: '' }, result, target, ports), ms };
    return describe(result, ms);
  };
  const address = await timed('address', network.resolve(url), (found, ms) =>
    ok('address', found.join(', ') + whose, ms),
  );
  if (address.status === 'fault') return [address];
  const connection = await timed('connection', network.connect(url), (found, ms) =>
    ok('connection', found + whose, ms),
  );
  if (connection.status === 'fault') return [address, connection];
  if (url.protocol !== 'https:') return [address, connection, skipped('tls', 'the URL begins with http://')];
  const tls = await timed('tls', network.secure(url), ({ version, expiresMs }, ms) => {
    const days = Math.floor((expiresMs - clock.now()) / dayMs);
    const detail = `${version}, the certificate ends in ${count(days, 'day')}`;
    return days < leastDays
      ? warning('tls', detail, 'Renew the certificate of the server.', ms)
      : ok('tls', detail, ms);
  });
  return [address, connection, tls];
}

function isFault(result: unknown): result is UpstreamFault {
  return typeof result === 'object' && (result as Partial<UpstreamFault>).kind === 'fault';
}
