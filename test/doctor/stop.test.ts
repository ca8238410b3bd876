import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkNamed, examineUrl, findings, notFound, playProvider, wholeBody } from '../support/examine.ts';
import type { AskedBody } from '../support/examine.ts';
import { sendJson, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

const line = 'alpha bravo charlie delta';

/** Plays a provider that writes the line it was asked for, and does something with stop sequences. */
function play(withStop: (stop: string) => readonly [status: number, body: string]): void {
  playProvider(upstream, {
    whole(response, asked) {
      const { stop: [stop] = [] } = asked as AskedBody & { readonly stop?: readonly string[] };
      const [status, body] = stop === undefined ? [200, wholeBody()] : withStop(stop);
      sendJson(response, status, body);
    },
  });
}

describe('stop sequences', () => {
  test('that end the answer are as they should be', async () => {
    play((stop) => [200, wholeBody(line.slice(0, line.indexOf(stop)))]);
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'chat.stop')).toMatchObject({
      status: 'ok',
      detail: 'the answer ends before it',
    });
  });

  test('that are passed over are a warning, since answers run on', async () => {
    play(() => [200, wholeBody(line)]);
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.stop', status: 'warning' }]);
    const { detail, advice } = checkNamed(report, 'chat.stop');
    expect(detail).toBe('the answer has the stop sequence in it');
    expect(advice).toMatch(/'stop'/);
  });

  test('that are refused are a warning with the words of the upstream', async () => {
    const error = { message: 'unknown field stop', type: 'x', param: null, code: 'bad_field' };
    play(() => [400, JSON.stringify({ error })]);
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.stop', status: 'warning' }]);
    expect(checkNamed(report, 'chat.stop').detail).toBe(
      'a question with a stop sequence is refused (status 400): bad_field, unknown field stop',
    );
  });

  test.each<[string, readonly [number, string]]>([
    ['a server that is busy', [503, notFound]],
    ['an answer that fails', [200, wholeBody(line, null)]],
  ])('are not judged by %s', async (_name, answer) => {
    play(() => answer);
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'chat.stop').status).toBe('skipped');
  });
});
