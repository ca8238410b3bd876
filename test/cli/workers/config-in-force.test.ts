import { expect, test } from 'vitest';
import { ConfigInForce } from '../../../src/cli/workers/config-in-force.ts';
import type { WorkerProcess } from '../../../src/cli/workers/fork-worker.ts';
import type { Answer, WorkerQuestion } from '../../../src/cli/workers/messages.ts';
import { checkConfig } from '../../../src/config/load.ts';

/** A config of a text, which is its port, too; with a command that prints the key of an upstream, if one is given. */
function configOf(text: string, command?: readonly string[]) {
  const printed =
    command === undefined ? {} : { other: { url: 'http://127.0.0.1:1/v1', apiKey: { command } } };
  const upstreams = { demo: { url: 'demo:' }, ...printed };
  return {
    text,
    config: checkConfig({ server: { port: Number(text) }, upstreams, models: { from: 'demo' } }, text),
  };
}

/** A worker that gives an answer to each reload; with `undefined`, none in time. */
function createWorker(answer: (text: string | null) => Answer | undefined = () => null) {
  const told: unknown[] = [];
  const times: unknown[] = [];
  const ask = async (question: WorkerQuestion, withinMs?: number): Promise<Answer | undefined> => {
    times.push(withinMs);
    if (question.name !== 'reload') throw new Error('only reloads are expected');
    told.push(question.isCounted ? `${question.text} counted` : question.text);
    return answer(question.text);
  };
  return { told, times, process: { ask } as unknown as WorkerProcess };
}

test('a config is put into force in all workers, also in starting and ending ones; one that serves counts it', async () => {
  const [ending, serving, starting] = [createWorker(), createWorker(), createWorker(() => undefined)];
  const inForce = new ConfigInForce(configOf('1001'));
  const workers = {
    alive: [ending, serving, starting].map((worker) => worker.process),
    serving: [serving.process],
  };
  expect(await inForce.replace(configOf('1002'), workers)).toEqual(['server.port']);
  expect([ending, serving, starting].map(({ told }) => told)).toEqual([['1002'], ['1002 counted'], ['1002']]);
  expect(inForce.text).toBe('1002');
});

test('a worker that starts while the others are told gets the new text', async () => {
  const seen: unknown[] = [];
  const inForce = new ConfigInForce(configOf('1001'));
  const worker = createWorker(() => (seen.push(inForce.text), null));
  await inForce.replace(configOf('1002'), { alive: [worker.process], serving: [worker.process] });
  expect(seen).toEqual(['1002']);
});

test('a config that one worker can not put into force is taken back in all of them', async () => {
  const [good, bad] = [createWorker(), createWorker((text) => (text === '1002' ? 'no such file' : null))];
  const inForce = new ConfigInForce(configOf('1001'));
  const workers = [good.process, bad.process];
  const replaced = inForce.replace(configOf('1002'), { alive: workers, serving: workers });
  const next = inForce.replace(configOf('1003'), { alive: workers, serving: workers });
  await expect(replaced).rejects.toThrow('no such file');
  await next;
  expect(good.told).toEqual(['1002 counted', '1001', '1003 counted']);
  expect(bad.told).toEqual(['1002', '1001', '1003']);
  expect(inForce).toMatchObject({ text: '1003', config: { server: { port: 1_003 } } });
});

test('a worker may take longer for a config with commands, which it runs first', async () => {
  const worker = createWorker();
  const workers = { alive: [worker.process], serving: [worker.process] };
  const inForce = new ConfigInForce(configOf('1001'));
  await inForce.replace(configOf('1002', ['print-token']), workers);
  await inForce.replace(configOf('1003'), workers);
  expect(worker.times).toEqual([10_000, 2_000]);
});
