import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelInfo, Provider } from '@pydantic/genai-prices';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openPriceList } from '../../../src/prices/open-price-list.ts';
import { startCommanded } from '../../support/commanded-gateway.ts';
import { runCommand } from '../../support/run-command.ts';
import { sendJson, startUpstream } from '../../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';

let folder: string;
let own: readonly Provider[];
beforeEach(async () => {
  folder = makeTemporaryFolder();
  own = await openPriceList().all();
});
// The list is that of the whole process.
afterEach(() => openPriceList().replace(own));

const models = {
  cheap: { routes: [{ upstream: 'own', model: 'x' }], price: { list: 'openai/gpt-4o-mini' } },
  dear: { routes: [{ upstream: 'own', model: 'x' }], price: { list: 'openai/gpt-4o', times: '1.2' } },
  typed: { routes: [{ upstream: 'own', model: 'x' }], price: { input: '1', output: '2' } },
};

/** Writes a later list, in which models of OpenAI have other prices or are not there, and a config. */
function write(
  change: (models: readonly ModelInfo[]) => readonly ModelInfo[],
  config: object = { models },
): void {
  const later = own.map((provider) =>
    provider.id === 'openai' ? Object.assign({}, provider, { models: change(provider.models) }) : provider,
  );
  writeFileSync(join(folder, 'later.json'), JSON.stringify(later));
  const upstreams = { own: { url: 'http://127.0.0.1:1/v1' } };
  writeFileSync(join(folder, 'textgate.yaml'), JSON.stringify({ upstreams, ...config }));
}

/** The prices of gpt-4o-mini changed, and gpt-4o withdrawn if so wished. */
const cheaper =
  (isWithdrawn = false) =>
  (all: readonly ModelInfo[]): readonly ModelInfo[] =>
    all
      .filter(({ id }) => !isWithdrawn || id !== 'gpt-4o')
      .map((model) =>
        model.id === 'gpt-4o-mini'
          ? Object.assign({}, model, { prices: { input_mtok: 0.12, output_mtok: 0.6 } })
          : model,
      );

const diff = (
  environment: Readonly<Record<string, string>> = { TEXTGATE_ADMIN_PORT: '1' },
  ...more: readonly string[]
) =>
  runCommand(['prices', 'diff', 'later.json', '--config', 'textgate.yaml', ...more], folder, {
    TEXTGATE_ADMIN_TOKEN: 'a-token-that-no-gateway-has',
    ...environment,
  });

describe('textgate prices diff', () => {
  test('shows the models of a config whose price a later list changes, and those that it has no more', async () => {
    write(cheaper(true));
    const { code, stdout, stderr } = await diff();
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.split('\n').map((line) => line.trim().replaceAll(/ +/g, ' '));
    expect(lines[0]).toBe('2 of 2 models would have other prices than that of 0.1.8.');
    expect(lines).toContain('cheap now 0.15 0.075 0.15 0.60');
    // Without a price of its own, cached input has that of input.
    expect(lines).toContain('later 0.12 0.12 0.12 0.60');
    expect(lines.find((line) => line.startsWith('later refused: '))).toContain(
      "the list of prices has no model 'gpt-4o' of openai; it has",
    );
    expect(lines).toContain('What keys would have paid is not known: no gateway answers');
  });

  test("compares what keys were charged in a week with the later list's charges, to the billionth", async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };
    const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
    upstream.play((response) => sendJson(response, 200, JSON.stringify({ choices, usage })));
    const gateway = await startCommanded({ config: { upstreams: { own: { url: upstream.url } }, models } });
    for (const model of ['cheap', 'cheap', 'typed', 'dear'])
      await (
        await gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] })
      ).text();
    write(cheaper());
    const { stdout } = await diff(gateway.adminEnvironment);
    // Two requests of 1,000 and 100 tokens at $0.15 and $0.60, one at $1 and $2, one at $3 and $12; then at $0.12 and $0.60.
    const charged = 2 * (0.15 + 0.06) + (1 + 0.2) + (3 + 1.2);
    const later = charged - 2 * 0.03;
    const line = stdout.split('\n').find((text) => text.startsWith('test ')) ?? '';
    const [, ...cells] = line.split(/ {2,}/);
    expect(Number(cells[0])).toBeCloseTo(charged / 1e3, 12);
    expect(Number(cells[1])).toBeCloseTo(later / 1e3, 12);
    expect(cells[2]).toBe('-1.0 %');
    openPriceList().replace(own);
    const { keys } = JSON.parse((await diff(gateway.adminEnvironment, '--json')).stdout) as {
      readonly keys: unknown;
    };
    expect(keys).toMatchObject([{ name: 'test', charged: cells[0], with_the_later_list: cells[1] }]);

    // The gateway is that of the config file, also where that is named by the option alone.
    openPriceList().replace(own);
    write(cheaper(), { models, admin: { port: Number(new URL(gateway.adminUrl).port) } });
    const { TEXTGATE_ADMIN_URL: _, ...environment } = gateway.adminEnvironment;
    expect((await diff(environment)).stdout).toContain(line);
    openPriceList().replace(own);
    const { stdout: withoutToken } = await diff({ TEXTGATE_ADMIN_TOKEN: '' });
    expect(withoutToken).toMatch(/^What keys would have paid is not known: no admin token in /m);
    openPriceList().replace(own);
    const json = JSON.parse((await diff({ TEXTGATE_ADMIN_TOKEN: '' }, '--json')).stdout) as object;
    expect(json).toMatchObject({ keys: null, keys_unknown: expect.stringMatching(/^no admin token in /) });
    expect(withoutToken).toContain('1 of 2 models would have another price');
  });

  test('compares the one price of all models that an upstream lists', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const usage = { prompt_tokens: 200, completion_tokens: 1, total_tokens: 201 };
    const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }];
    upstream.play((response, { path }) =>
      sendJson(
        response,
        200,
        JSON.stringify(path === '/v1/models' ? { data: [{ id: 'm' }] } : { choices, usage }),
      ),
    );
    const config = {
      upstreams: { own: { url: upstream.url } },
      models: { from: 'own', price: { list: 'openai/gpt-4o-mini' } },
    };
    const gateway = await startCommanded({ config });
    const asked = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(1_000) }] };
    await (await gateway.post('/v1/chat/completions', asked)).text();
    write(cheaper(), { models: config.models });
    const { stdout } = await diff(gateway.adminEnvironment);
    expect(stdout).toMatch(/^\* +now +0\.15 /m);
    expect(stdout).toMatch(/^test +\S+ +\S+ +-19\.6 %$/m);
  });

  test('says that a list changes nothing, and asks no gateway then', async () => {
    write((all) => all);
    expect(await diff()).toMatchObject({
      code: 0,
      stdout: '0 of 2 models would have other prices than that of 0.1.8.\n',
    });
    write(cheaper(), { models: { typed: models.typed } });
    expect((await diff()).stderr).toBe(
      'textgate: textgate.yaml has no price of the list: a later list changes nothing\n',
    );
  });

  test('refuses a list without end', async () => {
    write(cheaper());
    const { stderr } = await runCommand(['prices', 'diff', '/dev/zero', '--config', 'textgate.yaml'], folder);
    expect(stderr).toBe("textgate: /dev/zero can't be read: the file has more than 67108864 bytes\n");
  });

  test.each([
    ['{"a":1}', 'later.json is no list of prices: expected the data.json of genai-prices'],
    ['[]', 'later.json is no list of prices'],
    ['<html>', 'later.json is no list of prices'],
    ['[{"id":"openai","api_pattern":"x","models":[{}]}]', "later.json can't be used as a list of prices: "],
    [null, "later.json can't be read: "],
  ])('refuses %s', async (text, message) => {
    write(cheaper());
    if (text === null) writeFileSync(join(folder, 'x'), '');
    else writeFileSync(join(folder, 'later.json'), text);
    const file = text === null ? 'x/later.json' : 'later.json';
    const { code, stderr } = await runCommand(['prices', 'diff', file, '--config', 'textgate.yaml'], folder);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message.replace('later.json', file))]);
  });
});
