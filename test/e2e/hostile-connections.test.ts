import { describe } from 'vitest';
import { openStage } from '../support/stage.ts';
import { openTlsStage } from '../support/tls-stage.ts';
import { describeHostileConnections } from './hostile-connections.ts';

const limits = { concurrency: 1_000 };

/** The same edge in one process, and over TLS. */
const stages = [
  ['one process', await openStage({ limits })],
  ['over TLS', await openTlsStage({ limits })],
] as const;

describe.each(stages)('%s:', (_stage, stage) => {
  describeHostileConnections(stage);
});
