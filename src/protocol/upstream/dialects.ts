import { anthropicDialect } from './anthropic.ts';
import { chatDialect } from './chat.ts';
import type { Dialect } from './dialect.ts';
import { geminiDialect } from './gemini.ts';
import { responsesDialect } from './responses.ts';

/** Every upstream protocol, by its name in configs. */
export const dialects = {
  chat: chatDialect,
  responses: responsesDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
} as const satisfies Readonly<Record<string, Dialect>>;

export type DialectName = keyof typeof dialects;
