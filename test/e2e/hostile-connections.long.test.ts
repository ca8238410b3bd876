import { describe, expect, test } from 'vitest';
import { openWorkersStage } from '../support/served-workers.ts';
import { postgresAbsence } from '../support/test-postgres.ts';
import { describeHostileConnections } from './hostile-connections.ts';

/** The edge of two workers to which the connections are handed in turn. */
const stage = postgresAbsence === null ? await openWorkersStage() : null;

describe.skipIf(stage === null)('two workers:', () => {
  if (stage === null) return;
  describeHostileConnections(stage);

  test('none of all this has ended a worker', () => {
    expect(stage.gateway.server.output()).not.toContain('worker ended');
  });
});
