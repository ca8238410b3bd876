import { z } from 'zod';
import { isLinkLocal } from '../../shared/link-local.ts';
import { duration, valueKinds } from '../../shared/schema-values.ts';
import { headerName, upstreamHeaders, upstreamUrl } from './address-values.ts';
import { readSecretFile } from '../secret-file.ts';
import { noProxy, upstreamProxy } from './proxy-values.ts';
import { queueProblems, limiterFields } from './limiter-schema.ts';
import { tlsTowards } from './tls-schema.ts';
import { positiveDuration, readableFile, secret, trueOrFalse } from './values.ts';

/** How often an upstream is probed; more often than once a second would be a load on it. */
const probeInterval = duration.refine((milliseconds) => milliseconds >= 1_000, 'expected 1s or more');

/** Requests that find out by themselves whether an upstream answers. */
const probe = z.strictObject({
  path: z
    .string()
    .regex(/^\//, 'expected a path such as /models')
    .register(valueKinds, { kind: 'path' })
    .default('/models')
    .describe('The path below `url` that a probe requests.'),
  interval: probeInterval.prefault('10s').describe('The time between two probes: `1s` or more.'),
});

/** How long the parts of a call may take. */
const timeouts = z.strictObject({
  connect: positiveDuration.prefault('5s').describe('The longest time to open a connection.'),
  firstByte: positiveDuration
    .prefault('120s')
    .describe('The longest wait for the first byte of a streamed answer.'),
  firstText: positiveDuration.optional().meta({
    description:
      'The longest wait for the first text of a streamed answer, from the call on: then another route is tried. Thoughts do not count as text, unless `models.<name>.thinks` is set; default: not limited.',
    examples: ['10s'],
  }),
  idle: positiveDuration.prefault('60s').describe('The longest silence within a streamed answer.'),
  total: positiveDuration.prefault('10m').describe('The longest time of a whole call, its answer included.'),
});

/** The file of an API key that another program replaces from time to time. */
const keyFile = z.strictObject({
  file: readableFile(readSecretFile).meta({
    description:
      'The path of the file, relative to the working directory. It is read again every 2 s, so that a token may be replaced.',
    examples: ['/var/run/secrets/token'],
  }),
});

/** The longest time that a command may take, in milliseconds: the start waits for it. */
const maxCommandMs = 60_000;

/** The most words of a command, and the longest one, in UTF-16 code units. */
const maxCommandWords = 64;
const maxWordChars = 4_096;

/** A word may hold a secret, by a reference to an environment variable. */
const commandWord = z.string().min(1).max(maxWordChars).register(valueKinds, { kind: 'secret' });

/** The program that prints an API key which ends after some time. */
const keyCommand = z.strictObject({
  command: z
    .array(commandWord)
    .min(1)
    .max(maxCommandWords)
    .meta({
      description: 'A program and its arguments, which prints the key and nothing else; no shell reads them.',
      examples: [['gcloud', 'auth', 'print-access-token']],
    }),
  every: duration
    .refine((milliseconds) => milliseconds >= 10_000, 'expected 10s or more')
    .prefault('10m')
    .describe('How long a key is used before the program is run again: `10s` or more.'),
  timeout: positiveDuration
    .refine((milliseconds) => milliseconds <= maxCommandMs, 'expected 60s or less')
    .prefault('10s')
    .describe('The longest time that the program may take: at most `60s`.'),
});

/** The longest hidden prompt, in tokens: usage with a longer one counts as implausible. */
const maxHiddenTokens = 131_072;

/** An upstream: how it is called, what it can do, and how long it may take. */
export const upstream = z
  .strictObject({
    url: upstreamUrl.meta({
      description:
        'The base address of the API, version included, without an endpoint such as `/chat/completions`. A query is sent with every call. `demo:` is the built-in demo.',
      examples: ['http://127.0.0.1:8000/v1', 'https://api.openai.com/v1'],
    }),
    apiKey: z
      .union([secret, keyFile, keyCommand])
      .optional()
      .meta({
        description:
          'The API key of the provider, usually a reference to an environment variable; or the file that holds it, or the command that prints it.',
        examples: [
          '${OPENAI_API_KEY}',
          { file: '/var/run/secrets/token' },
          { command: ['gcloud', 'auth', 'print-access-token'] },
        ],
      }),
    authHeader: headerName.optional().meta({
      description: 'The header that carries the API key; default: the one of the dialect.',
      examples: ['api-key'],
    }),
    headers: upstreamHeaders.default({}).meta({
      description: 'Further headers of every call, by name.',
      examples: [{ 'OpenAI-Organization': '${OPENAI_ORGANIZATION}' }],
    }),
    allowLinkLocal: trueOrFalse
      .default(false)
      .describe('Allows addresses where clouds serve the credentials of a machine, such as 169.254.169.254.'),
    proxy: upstreamProxy.optional().meta({
      description:
        'The HTTP proxy through which it is reached, with a user and password if it asks for them; or `none`. Default: that of `HTTPS_PROXY` or `HTTP_PROXY`, unless `NO_PROXY` names the host.',
      examples: ['http://proxy.example:3128', noProxy],
    }),
    tls: tlsTowards('upstream')
      .optional()
      .meta({
        description:
          'How the certificate of the upstream is verified, and the one that is sent to it. The files are read again every 2 s.',
        examples: [{ ca: '/etc/textgate/authority.pem' }],
      }),
    systemRole: z
      .enum(['system', 'developer'])
      .default('system')
      .describe('The role under which instructions are sent in Chat Completions.'),
    maxTokensField: z
      .enum(['max_tokens', 'max_completion_tokens'])
      .default('max_tokens')
      .describe('The field of Chat Completions in which the output cap is sent.'),
    streamUsage: z
      .enum(['ask', 'given'])
      .default('ask')
      .describe(
        '`ask` requests the usage of streams with `stream_options`; `given` leaves it out, for upstreams that refuse it.',
      ),
    dialects: z
      .array(z.enum(['chat', 'responses', 'anthropic', 'gemini']))
      .min(1)
      .default(['chat'])
      .describe('The protocols that the upstream offers; the first one is used.'),
    finishReason: z
      .enum(['required', 'optional'])
      .default('required')
      .describe(
        '`optional` accepts `[DONE]` as a complete end, for upstreams that never send a finish reason.',
      ),
    emptyAnswer: z
      .enum(['complete', 'failed'])
      .default('complete')
      .describe(
        'What a complete answer without text is, as where all of it was reasoning: `failed` tries the next route of the model.',
      ),
    thoughtTag: z
      .string()
      .regex(/^[A-Za-z][\w-]{0,31}$/, "expected the name of a tag such as think, without '<' and '>'")
      .optional()
      .meta({
        description:
          'The tag in which the text of its answers begins with thoughts, as in `<think>…</think>`: they are left out; default: none.',
        examples: ['think'],
      }),
    onDisconnect: z
      .enum(['estimate', 'drain', 'free'])
      .default('estimate')
      .describe(
        'When a client disconnects: `estimate` its usage, `drain` the answer to learn its usage, or charge nothing (`free`).',
      ),
    hiddenPrompt: z
      .int()
      .min(0)
      .max(maxHiddenTokens)
      .optional()
      .meta({
        description:
          'The tokens that it may add to a prompt in secret and bill: strict holds and `x-textgate-max-cost` count them; default: what its answers show, as [Money](money.md#hidden-prompts) says.',
        examples: [0],
      }),
    probe: probe.optional().meta({
      description: 'Requests that check the health of the upstream periodically; default: none.',
      examples: [{ path: '/models', interval: '10s' }],
    }),
    timeouts: timeouts.prefault({}).describe('How long the parts of a call may take.'),
    ...limiterFields,
  })
  .refine(({ url, allowLinkLocal }) => allowLinkLocal || !isLinkLocal(url.hostname), {
    path: ['url'],
    message:
      "a link-local address, where clouds serve a machine's credentials: set allowLinkLocal: true to allow it",
  })
  .refine(({ url, tls: settings }) => settings === undefined || url.protocol === 'https:', {
    path: ['tls'],
    message: 'expected only where the url begins with https://: leave it out, or correct the url',
  })
  .refine(({ url, dialects }) => url.protocol !== 'demo:' || dialects.every((name) => name === 'chat'), {
    path: ['dialects'],
    message: 'the built-in demo has Chat Completions only: leave it out',
  })
  .superRefine((config, context) => {
    for (const problem of queueProblems(config)) context.addIssue({ code: 'custom', ...problem });
  })
  .meta({ examples: [{ url: 'http://127.0.0.1:8000/v1' }] });
