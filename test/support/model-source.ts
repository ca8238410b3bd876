import type { ModelSource } from '../../src/domain/routing.ts';
import { chatDialect } from '../../src/protocol/upstream/chat.ts';
import type { DialectQuirks } from '../../src/protocol/upstream/dialect.ts';
import { localTarget } from './call-target.ts';

/** The settings of most upstreams. */
export const usualQuirks: DialectQuirks = {
  systemRole: 'system',
  maxTokensField: 'max_tokens',
  streamUsage: 'ask',
};

/** A Chat Completions upstream with default settings. */
export const localSource: ModelSource = {
  upstream: 'local',
  target: localTarget(),
  dialect: chatDialect,
  quirks: usualQuirks,
  finishReason: 'required',
  onDisconnect: 'estimate',
  totalMs: 600_000,
  secrets: () => ({ keys: [], hosts: [] }),
};
