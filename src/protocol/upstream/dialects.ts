import { anthropicDialect } from './anthropic.ts';
import { chatDialect } from './chat.ts';
import { geminiDialect } from './gemini.ts';
import { responsesDialect } from './responses.ts';
import type { Dialect } from './dialect.ts';
import type { DialectName } from '../../domain/routing.ts';

/** Every protocol that we speak to providers, by the name that a route gives it. */
export const dialects: Readonly<Record<DialectName, Dialect>> = {
  chat: chatDialect,
  responses: responsesDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
};
