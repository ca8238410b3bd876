import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startAtTerminal, terminalAbsence } from '../support/pseudo-terminal.ts';
import type { PseudoTerminal } from '../support/pseudo-terminal.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startCommanded } from '../support/commanded-gateway.ts';
import { freePort } from '../support/free-port.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const longName = 'a-model-whose-name-is-much-longer-than-any-column-of-a-narrow-terminal';

/** A gateway in which three requests run: two for `slow`, one for a model with a long name. */
async function startScene() {
  const silent = await startUpstream();
  silent.play(() => {});
  const route = { routes: [{ upstream: 'silent', model: 'm' }], free: true };
  const gateway = await startCommanded({
    config: {
      upstreams: { demo: { url: 'demo:' }, silent: { url: silent.url } },
      models: {
        demo: { routes: [{ upstream: 'demo', model: 'demo' }], free: true },
        slow: route,
        [longName]: route,
      },
    },
    keySettings: { concurrency: 50 },
  });
  await gateway.ask();
  const models = ['slow', longName, 'slow'];
  const answers: Promise<unknown>[] = [];
  for (const [at, model] of models.entries()) {
    const messages = [{ role: 'user', content: 'x' }];
    const path = '/v1/chat/completions';
    answers.push(gateway.post(path, { model, messages }).catch(() => null));
    await eventually('the upstream is called', () => silent.running === at + 1);
  }
  const watch = (columns: number, environment: Readonly<Record<string, string>> = {}): PseudoTerminal =>
    startAtTerminal(['top'], { rows: 24, columns }, { ...gateway.adminEnvironment, ...environment });
  return { silent, gateway, answers, watch };
}

describe.skipIf(terminalAbsence !== null)(`textgate top at a terminal ${terminalAbsence ?? ''}`, () => {
  test('fits 80 columns and 200, and cuts what has no room', async () => {
    const { silent, watch } = await startScene();
    const narrow = watch(80);
    const wide = watch(200);
    for (const terminal of [narrow, wide]) {
      await terminal.shows(/^requests: 1 to 3 of 3, oldest first$/);
      const screen = terminal.screen();
      expect(screen[0]).toMatch(/^textgate \d+\.\d+\.\d+: ready$/);
      expect(screen[1]).toBe('3 running, 0 waiting');
      expect(screen[2]).toMatch(/^last \d+ s: 1 request \([\d.]+\/s\), \d+ tokens out$/);
      expect(screen[3]).toBe('endings: completed 1');
      expect(screen.slice(4, 6).toSorted()).toEqual([
        expect.stringMatching(/^upstream demo {4}ok, 0 running$/),
        expect.stringMatching(/^upstream silent {2}unknown, 3 running$/),
      ]);
      expect(screen).toHaveLength(24);
      expect(terminal.hasOverflowed()).toBe(false);
    }
    expect(narrow.screen()[7]).toMatch(/^ {2}REQUEST +FOR +FIRST TEXT +KEY +MODEL +UPSTREAM$/);
    expect(narrow.screen()[9]).toMatch(/^ {2}\w{8} +[\d.]+ s +none yet {2}test +a-model-who\S*… +silent$/);
    expect(wide.screen()[7]).toMatch(/ UPSTREAM +MODE +PROTOCOL$/);
    expect(wide.screen()[9]).toMatch(new RegExp(` {2}test +${longName} {2}silent`));
    for (const terminal of [narrow, wide]) {
      terminal.type('q');
      expect(await terminal.finished).toEqual({ code: 0, isRestored: true });
      expect(terminal.isFull()).toBe(false);
    }
    await silent.close();
  });

  test('has colours at a terminal, and none with NO_COLOR', async () => {
    const { silent, watch } = await startScene();
    const colours = /\p{Cc}\[\d+m/u;
    const coloured = watch(80);
    const plain = watch(80, { NO_COLOR: '1' });
    for (const terminal of [coloured, plain]) await terminal.shows(/^> \w{8}/);
    expect(coloured.output()).toMatch(colours);
    expect(plain.output()).not.toMatch(colours);
    // Ctrl-C
    for (const terminal of [coloured, plain]) {
      terminal.type('\x03');
      expect(await terminal.finished).toEqual({ code: 0, isRestored: true });
    }
    await silent.close();
  });

  test.each([
    [80, / UPSTREAM +MODE$/],
    [200, / UPSTREAM +MODE +PROTOCOL$/],
    // Such as a serial console: it does not say its size.
    [0, / UPSTREAM +MODE +PROTOCOL$/],
  ])(
    'prints the status once, without colours and as wide as fits, at one of %i columns',
    async (columns, head) => {
      const { gateway, silent } = await startScene();
      const environment = { ...gateway.adminEnvironment, NO_COLOR: '1' };
      const terminal = startAtTerminal(['top', '--once'], { rows: 24, columns }, environment);
      expect(await terminal.finished).toEqual({ code: 0, isRestored: true });
      const lines = terminal.output().trimEnd().split('\r\n');
      expect(lines[0]).toMatch(/^textgate [\d.]+: ready$/);
      expect(lines.at(-4)).toMatch(head);
      expect(lines.slice(-3)).toEqual(
        Array<unknown>(3).fill(expect.stringMatching(/none yet {2}test .* silent/)),
      );
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(
        columns === 0 ? 100 : columns,
      );
      expect(terminal.output()).not.toContain('\x1b');
      await silent.close();
    },
  );

  test('selects, filters, sorts, and cancels a request after a question', async () => {
    const { gateway, silent, watch } = await startScene();
    const terminal = watch(100);
    const selected = (): string => terminal.screen().find((line) => line.startsWith('> ')) ?? '';
    await terminal.shows(/^> \w{8}.* slow /);
    terminal.type('j');
    await terminal.shows(/^> .* a-model-/);
    terminal.type('\x1b[A');
    await terminal.shows(/^> .* slow /);
    terminal.type('ss');
    await terminal.shows(/3 of 3, by model$/);
    terminal.type('/A-MODEL');
    await terminal.shows(/^filter: A-MODEL_/);
    await terminal.shows(/^requests: 1 to 1 of 1 with "A-MODEL"/);
    terminal.type('\r');
    await terminal.shows(/^j\/k select/);
    await eventually('the only one is selected', () => selected().includes('a-model-'));
    terminal.type('c');
    await terminal.shows(/^cancel \w{8} of test\? y: yes/);
    terminal.type('n');
    await terminal.shows(/^nothing was cancelled/);
    expect(silent.running).toBe(3);
    terminal.type('c');
    await terminal.shows(/^cancel \w{8} of /);
    terminal.type('y');
    await terminal.shows(/^req_\w+ is cancelled/);
    await eventually('the call is stopped', () => silent.running === 2);
    await terminal.shows(/^requests: none with "A-MODEL"/);
    terminal.type('/\x7f');
    await terminal.shows(/^filter: A-MODE_/);
    terminal.type('\x1b');
    await terminal.shows(/^requests: 1 to 2 of 2, by model/);
    expect(await gateway.running()).toHaveLength(2);
    await silent.close();
  });

  test('stands still while it is paused, and follows the size of the terminal', async () => {
    const { gateway, silent, watch } = await startScene();
    const terminal = watch(80);
    await terminal.shows(/^requests: 1 to 3 of 3/);
    terminal.type('p');
    await terminal.shows(/^PAUSED/);
    await gateway.run('cancel', (await gateway.running())[0]?.request_id ?? '');
    await eventually('it is stopped', () => silent.running === 2);
    await terminal.shows(/^requests: 1 to 3 of 3/);
    terminal.type('p');
    await terminal.shows(/^requests: 1 to 2 of 2/);
    terminal.resize(12, 60);
    await terminal.shows(/^ {2}REQUEST +FOR +FIRST TEXT +KEY$/);
    await eventually('it has as many lines', () => terminal.screen().length === 12);
    await silent.close();
  });

  test('gives the terminal back when it is ended by a signal', async () => {
    const { silent, watch } = await startScene();
    const terminal = watch(80);
    await terminal.shows(/^> \w{8}/);
    expect(terminal.isFull()).toBe(true);
    const sigterm = 15;
    terminal.signal(sigterm);
    expect(await terminal.finished).toEqual({ code: 143, isRestored: true });
    expect(terminal.isFull()).toBe(false);
    await silent.close();
  });

  test('says that the connection is lost, and goes on when the gateway is back', async () => {
    const folder = makeTemporaryFolder();
    const environment = { TEXTGATE_PORT: '0', TEXTGATE_ADMIN_PORT: String(await freePort()) };
    const first = serveHere(['serve'], folder, environment);
    await first.printed(/textgate serves/);
    const TEXTGATE_ADMIN_TOKEN = readFileSync(join(folder, 'data', 'admin-token'), 'utf8').trim();
    const watcher = { ...environment, TEXTGATE_ADMIN_TOKEN };
    const terminal = startAtTerminal(['top'], { rows: 24, columns: 80 }, watcher);
    await terminal.shows(/^requests: none/);
    first.signal('SIGTERM');
    await first.finished;
    await terminal.shows(/^connection lost, trying again: /);
    serveHere(['serve'], folder, environment);
    await terminal.shows(/^j\/k select/);
    expect(terminal.screen()[0]).toMatch(/: ready$/);
  });
});

describe('textgate top without a terminal', () => {
  test('prints the status once, and JSON with --json', async () => {
    const { gateway, silent } = await startScene();
    for (const args of [['top'], ['top', '--once']]) {
      const { code, stdout, stderr } = await gateway.run(...args);
      expect([code, stderr]).toEqual([0, '']);
      const lines = stdout.trimEnd().split('\n');
      expect(lines[0]).toMatch(/^textgate [\d.]+: ready$/);
      expect(lines.at(-4)).toMatch(/^REQUEST +FOR +FIRST TEXT +KEY +MODEL +UPSTREAM/);
      expect(lines.at(-1)).toMatch(/^\w{8} +[\d.]+ s +none yet/);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
      expect(stdout).not.toContain('\x1b');
    }
    const json = JSON.parse((await gateway.run('top', '--json')).stdout) as object;
    expect(json).toMatchObject({ object: 'status', in_flight: { running: 3 } });
    await silent.close();
  });

  test('fails with one line where there is no gateway', async () => {
    const nowhere = {
      TEXTGATE_ADMIN_URL: `http://127.0.0.1:${await freePort()}`,
      TEXTGATE_ADMIN_TOKEN: 'any',
    };
    expect(await runCommand(['top'], undefined, nowhere)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^textgate: the gateway does not answer on \S+: start it, .*\n$/,
      ) as string,
    });
  });
});
