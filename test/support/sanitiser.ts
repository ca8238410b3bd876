import type { TextTurn } from '../../src/protocol/text.ts';
import { createSanitiser } from '../../src/protocol/upstream/words/sanitise.ts';
import type { Sanitise } from '../../src/protocol/upstream/words/sanitise.ts';

/** The sanitiser of a request with these turns, to an upstream without a key. */
export function sanitiserOf(turns: readonly TextTurn[]): Sanitise {
  return createSanitiser({ turns, clientKey: '', upstream: () => ({ keys: [], hosts: [] }), names: [] });
}

/** The sanitiser of a request without a text, to an upstream without a key. */
export const plainSanitiser = sanitiserOf([]);
