import { startGateway } from '../support/test-gateway.ts';

/** The process to be killed: a gateway with a webhook, on a file or a server, which reports its addresses once it listens. */
const [upstreamUrl = '', database = '', spool = '', url = '', secret = ''] = process.argv.slice(2);
const gateway = await startGateway({
  logLevel: 'silent',
  upstreamUrl,
  ...(database.startsWith('postgres') ? { databaseUrl: database, spool } : { storage: database }),
  // A dollar for a token of output.
  price: { input: '0', output: '1000000' },
  webhooks: { ops: { url, secret } },
  limits: { requestsPerMinute: 10_000_000, concurrency: 1_000, lowBalance: '10' },
});
process.send?.({ url: gateway.url, adminUrl: gateway.adminUrl, adminToken: gateway.adminToken });
