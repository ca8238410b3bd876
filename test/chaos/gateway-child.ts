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
// Every second process, more or less: keys with and without a budget are served by different units.
const budget = process.pid % 2 === 0 ? { amount: '1000', per: 'day' as const, warnAt: ['0.001'] } : undefined;
const { key } = await gateway.gateway.keys.create({ name: 'payer', balance: '1000', budget });
process.send?.({ url: gateway.url, key, startMs: performance.now() - startedMs });
