import { startGateway } from '../support/test-gateway.ts';

/** The process that is killed: a gateway on a file, which says where it listens as soon as it does. */
const [upstreamUrl = '', file = '', durability = 'normal'] = process.argv.slice(2);
const startedMs = performance.now();
const gateway = await startGateway({
  logLevel: 'silent',
  upstreamUrl,
  storage: file,
  durability: durability === 'full' ? 'full' : 'normal',
  price: { input: '3', output: '7' },
  limits: { requestsPerMinute: 10_000_000, concurrency: 1_000 },
});
const { key } = await gateway.gateway
  .createKey('payer', { balanceNanos: 1_000_000_000_000 })
  .then(({ secret }) => ({ key: secret }));
process.send?.({ url: gateway.url, key, startMs: performance.now() - startedMs });
