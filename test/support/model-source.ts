import type { ModelSource } from '../../src/domain/routing.ts';
import type { DialectQuirks } from '../../src/protocol/upstream/dialect.ts';

/** The settings of most upstreams. */
export const usualVariation: DialectQuirks = {
  systemRole: 'system',
  maxTokensField: 'max_tokens',
  streamUsage: 'ask',
};

/** A Chat Completions upstream with default settings. */
export const localSource: ModelSource = {
  upstream: 'local',
  speech: { dialect: 'chat', finishReason: 'required', variation: usualVariation },
  onDisconnect: 'estimate',
  totalMs: 600_000,
};
