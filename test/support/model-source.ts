import type { ModelSource, OfferedModel, Route } from '../../src/domain/routing.ts';
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
  thoughtTag: null,
  onDisconnect: 'estimate',
  totalMs: 600_000,
  secrets: () => ({ keys: [], hosts: [] }),
};

/** A route to it without any setting. */
export const localRoute: Route = { ...localSource, model: 'tiny', weight: null, cost: null, measure: null };

/** The settings of most models. */
export const usualSettings: Pick<OfferedModel, 'createdAtSeconds' | 'policy'> = {
  createdAtSeconds: 0,
  policy: null,
};
