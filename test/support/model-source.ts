import type { ModelSource } from '../../src/domain/routing.ts';
import type { DialectQuirks } from '../../src/protocol/upstream/dialect.ts';

/** What most upstreams want. */
export const usualVariation: DialectQuirks = {
  systemRole: 'system',
  maxTokensField: 'max_tokens',
  streamUsage: 'ask',
};

/** An upstream that speaks Chat Completions and wants nothing special. */
export const localSource: ModelSource = {
  upstream: 'local',
  speech: { dialect: 'chat', finishReason: 'required', variation: usualVariation },
  onDisconnect: 'estimate',
  totalMs: 600_000,
};
