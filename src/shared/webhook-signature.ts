import { createHmac } from 'node:crypto';

/** The prefix of secrets that hold their key in base64, as Standard Webhooks writes them. */
const standardPrefix = 'whsec_';

/** What is signed of a message, beside the secret. */
export interface SignedMessage {
  readonly id: string;
  /** When the attempt begins, in seconds since 1970. */
  readonly timestamp: number;
  /** The body, byte for byte as it is sent. */
  readonly body: string;
}

/**
 * The headers of a message by Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, in base64, once for each secret.
 * Signatures are separated by a blank; a receiver accepts the message if one of them is of its secret.
 */
export function signatureHeaders(
  secrets: readonly string[],
  { id, timestamp, body }: SignedMessage,
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const signatures = secrets.map(
    (secret) =>
      `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}

/** The bytes of a secret: those in base64 behind the prefix, or else those of the text itself. */
function keyOf(secret: string): Buffer {
  return secret.startsWith(standardPrefix)
    ? Buffer.from(secret.slice(standardPrefix.length), 'base64')
    : Buffer.from(secret, 'utf8');
}
