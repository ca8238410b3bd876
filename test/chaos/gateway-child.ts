import { startGateway } from '../support/test-gateway.ts';
import { configuredPrice } from './numbered-price.ts';

/** The process to be killed: a gateway on a database file, which reports its address once it listens. */
const [upstreamUrl = '', file = '', durability = 'normal'] = process.argv.slice(2);
const startedMs = performance.now();
const gateway = await startGateway({
  logLevel: 'silent',
  upstreamUrl,
  storage: file,
  durability: durability === 'full' ? 'full' : 'normal',
  price: configuredPrice,
  limits: { requestsPerMinute: 10_000_000, concurrency: 1_000 },
});
const { key } = await gateway.gateway
  .createKey('payer', { balanceNanos: 1_000_000_000_000 })
  .then(({ secret }) => ({ key: secret }));
process.send?.({ url: gateway.url, key, startMs: performance.now() - startedMs });
