import { startGateway } from './test-gateway.ts';

/** The process behind `forkGateway`: it serves, and reports its memory on request. */
const [, , upstreamUrl = '', concurrency = '1000', queueWait = '0s'] = process.argv;
const gateway = await startGateway({
  logLevel: 'silent',
  upstreamUrl,
  limits: { requestsPerMinute: 10_000_000, concurrency: Number(concurrency), queueWait },
});

process.on('message', () => {
  global.gc?.();
  global.gc?.();
  process.send?.({ memory: process.memoryUsage() });
});

const { url, adminUrl, key } = gateway;
process.send?.({ url, adminUrl, key });
