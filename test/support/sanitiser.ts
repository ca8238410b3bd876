import { createSanitiser } from '../../src/protocol/upstream/words/sanitise.ts';

/** The sanitiser of a request without a text, to an upstream without a key. */
export const plainSanitiser = createSanitiser({
  turns: [],
  clientKey: '',
  upstream: () => ({ keys: [], hosts: [] }),
  names: [],
});
