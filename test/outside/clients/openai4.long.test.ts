import { OpenAI } from 'openai4';
import { testCancelled } from '../../support/cancelled-clients.ts';
import { testConversations } from '../../support/openai-conversations.ts';
import { openStage } from '../../support/stage.ts';

/** The type of the current client, which the tests are written with. */
type Current = Parameters<typeof testCancelled>[1];
type Chats = Current['prototype']['chat']['completions'];

const Client = OpenAI as unknown as Current;

// Its stream helpers have a place of their own.
await testConversations(
  '4',
  Client,
  (client) => (client as unknown as OpenAI).beta.chat.completions as unknown as Chats,
);
testCancelled('4', Client, await openStage());
