import { anthropicDialect } from '../protocol/upstream/anthropic.ts';
import { chatDialect } from '../protocol/upstream/chat.ts';
import { geminiDialect } from '../protocol/upstream/gemini.ts';
import { responsesDialect } from '../protocol/upstream/responses.ts';
import type { Dialect } from '../protocol/upstream/dialect.ts';
import type { DialectName } from '../domain/routing.ts';

/** Every protocol that we speak to providers, by the name that a route gives it. */
export const dialects: Readonly<Record<DialectName, Dialect>> = {
  chat: chatDialect,
  responses: responsesDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
};
