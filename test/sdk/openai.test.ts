import OpenAI from 'openai';
import { testConversations } from '../support/openai-conversations.ts';

await testConversations('7', OpenAI, (client) => client.chat.completions);
