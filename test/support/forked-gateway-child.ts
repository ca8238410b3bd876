import { startGateway } from './test-gateway.ts';

/** The process behind `forkGateway`: it serves, and reports its memory on request. */
const gateway = await startGateway({
  logLevel: 'silent',
  upstreamUrl: process.argv[2] ?? '',
  limits: { requestsPerMinute: 10_000_000, concurrency: 1_000 },
});

process.on('message', () => {
  global.gc?.();
  global.gc?.();
  process.send?.({ memory: process.memoryUsage() });
});

const { url, adminUrl, key } = gateway;
process.send?.({ url, adminUrl, key });
