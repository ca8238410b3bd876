import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { sayTexts } from '../support/scripted-upstream.ts';
import { openWorkersStage, workersIn } from '../support/served-workers.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

/** The time that a test may take, in milliseconds: processes are started. */
const slow = 60_000;

const modelsWith = (name: string, upstream = 'local') => ({
  models: { [name]: { routes: [{ upstream, model: 'tiny' }], free: true } },
});

const served =
  postgresAbsence === null ? await openWorkersStage({ changesDuringStart: modelsWith('changed') }) : null;

describe.skipIf(served === null)('the config of two workers', () => {
  const { upstream, gateway } = served ?? ({} as NonNullable<typeof served>);

  /** Requests of a model, enough that each worker has some. */
  async function askAll(model: string): Promise<ReadonlySet<number | string>> {
    upstream.play(sayTexts(['Hello']));
    const asked = await Promise.all(Array.from({ length: 8 }, () => gateway.ask({ model })));
    return new Set(asked.map(({ status }) => status));
  }

  test(
    'is what the file was changed to while they started, in both of them',
    async () => {
      await gateway.server.printed(/config reloaded/);
      expect(await askAll('changed')).toEqual(new Set([200]));
      expect(await askAll('small')).toEqual(new Set([404]));
    },
    slow,
  );

  test(
    'is that of the others for a worker that replaces a killed one, although the file can not be used any more',
    async () => {
      gateway.configure(modelsWith('other', 'unknown'));
      gateway.server.signal('SIGHUP');
      await gateway.server.printed(/config reload failed/);
      for (const [index, pid] of gateway.pids().entries()) {
        process.kill(pid, 'SIGKILL');
        await eventually('its successor takes requests', async () => {
          await gateway.ask({ model: 'changed' });
          return workersIn(gateway.server.output()).has(index + 3);
        });
      }
      expect(await askAll('changed')).toEqual(new Set([200]));
    },
    slow,
  );
});
