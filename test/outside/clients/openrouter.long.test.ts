import { ChatResult$inboundSchema as completion } from '@openrouter/sdk/models/chatresult.js';
import { ChatStreamChunk$inboundSchema as chunk } from '@openrouter/sdk/models/chatstreamchunk.js';
import { OpenResponsesResult$inboundSchema as response } from '@openrouter/sdk/models/openresponsesresult.js';
import { StreamEvents$inboundSchema as event } from '@openrouter/sdk/models/streamevents.js';
import { expect, test } from 'vitest';
import { collectSent } from '../../support/sent-bodies.ts';
import type { SentKind } from '../../support/sent-bodies.ts';

/** What reads a body, or says why it does not. */
interface Schema {
  safeParse(body: unknown): { readonly success: boolean; readonly error?: { readonly message: string } };
}

const schemas: Partial<Record<SentKind, Schema>> = { completion, chunk, response, event };

test('@openrouter/sdk reads all bodies and events that are sent', async () => {
  const refused = (await collectSent()).flatMap(({ kind, of, body }) => {
    const error = schemas[kind]?.safeParse(body).error;
    return error === undefined ? [] : [`${kind}, ${of}: ${error.message}`];
  });
  expect(refused).toEqual([]);
});
