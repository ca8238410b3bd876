import { z } from 'zod';
import { isLinkLocal } from '../shared/link-local.ts';
import { duration } from '../shared/schema-values.ts';
import { headerName, headerValue, positiveDuration, secret, upstreamUrl } from './values.ts';

/** How often an upstream is probed; more often than once a second would be a load on it. */
const probeInterval = duration.refine((milliseconds) => milliseconds >= 1_000, 'expected 1s or more');

/** An upstream: how it is called, what it can do, and how long it may take. */
export const upstream = z
  .strictObject({
    url: upstreamUrl,
    apiKey: secret.optional(),
    authHeader: headerName.optional(),
    headers: z.record(headerName, headerValue).default({}),
    allowLinkLocal: z.boolean().default(false),
    systemRole: z.enum(['system', 'developer']).default('system'),
    maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
    streamUsage: z.enum(['ask', 'given']).default('ask'),
    dialects: z
      .array(z.enum(['chat', 'responses', 'anthropic', 'gemini']))
      .min(1)
      .default(['chat']),
    finishReason: z.enum(['required', 'optional']).default('required'),
    onDisconnect: z.enum(['estimate', 'drain', 'free']).default('estimate'),
    probe: z
      .strictObject({
        path: z.string().startsWith('/').default('/models'),
        interval: probeInterval.prefault('10s'),
      })
      .optional(),
    timeouts: z
      .strictObject({
        connect: positiveDuration.prefault('5s'),
        firstByte: positiveDuration.prefault('120s'),
        idle: positiveDuration.prefault('60s'),
        total: positiveDuration.prefault('10m'),
      })
      .prefault({}),
  })
  .refine(({ url, allowLinkLocal }) => allowLinkLocal || !isLinkLocal(url.hostname), {
    path: ['url'],
    message:
      "a link-local address, where clouds serve a machine's credentials: set allowLinkLocal: true to allow it",
  });
