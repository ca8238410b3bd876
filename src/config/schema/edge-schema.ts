import { z } from 'zod';
import { formatByteSize } from '../../shared/byte-size.ts';
import { duration } from '../../shared/schema-values.ts';
import { byteSize } from './values.ts';

/** The bounds of the deadlines of connections, in milliseconds. */
const leastMs = 100;
const mostMs = 3_600_000;

/** The bounds of the size of a head, in bytes: a key and the usual headers fit, and each connection may hold one in memory. */
const leastHeadBytes = 4_096;
const mostHeadBytes = 262_144;

const deadline = duration.refine(
  (milliseconds) => milliseconds >= leastMs && milliseconds <= mostMs,
  'expected a duration from 100ms to 1h',
);

/** How long the clients of both listeners may take. */
export const connectionDeadlines = z
  .strictObject({
    head: deadline.prefault('10s').describe('The longest time for the head of a request to arrive.'),
    request: deadline
      .prefault('30s')
      .describe(
        'The longest time for a whole request to arrive, without the time in which the gateway does not read it; not less than `head`.',
      ),
    unread: deadline
      .prefault('30s')
      .describe(
        'How long a client may leave its answer unread; four times as long once a megabyte was sent on the connection.',
      ),
    idle: deadline
      .prefault('65s')
      .describe(
        'How long a connection with a valid key is kept open between two requests: longer than a balancer in front keeps it. Others are kept for 5 s at most.',
      ),
  })
  .refine(({ head, request }) => head <= request, {
    path: ['head'],
    message: 'expected no more than `request`, which includes it',
  });

/** The largest head of a request. */
export const headSize = byteSize.refine(
  (bytes) => bytes >= leastHeadBytes && bytes <= mostHeadBytes,
  `expected a size from ${formatByteSize(leastHeadBytes)} to ${formatByteSize(mostHeadBytes)}`,
);
