import type { ServerResponse } from 'node:http';
import { examineUpstreams } from '../../src/composition/upstreams/doctor.ts';
import { checkConfig } from '../../src/config/load.ts';
import { namesInConfig } from '../../src/config/setting-names.ts';
import type { Check, UpstreamReport } from '../../src/doctor/report.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { chatFrames, sendJson } from './scripted-upstream.ts';

/** How an upstream is examined, beside its URL. */
interface ExamineSettings {
  readonly upstream?: object;
  readonly models?: object;
  readonly passthrough?: readonly object[];
  readonly model?: string;
  readonly callMs?: number;
  readonly triesResponses?: boolean;
  readonly triesWrongKey?: boolean;
}

/** Examines one upstream at a URL as `textgate doctor` does, with a config in which it is named `mine`. */
export async function examineUrl(url: string, settings: ExamineSettings = {}): Promise<UpstreamReport> {
  const { upstream = {}, models = { from: 'mine' }, model = null, callMs = 10_000 } = settings;
  const { passthrough = [] } = settings;
  const config = checkConfig({ upstreams: { mine: { url, ...upstream } }, models, passthrough }, 'the test');
  const reports = examineUpstreams(config, {
    model,
    callMs,
    triesResponses: settings.triesResponses ?? false,
    triesWrongKey: settings.triesWrongKey ?? false,
    nameSettings: namesInConfig,
  });
  const [report] = await Array.fromAsync(reports);
  if (report === undefined) throw new Error('no report');
  return report;
}

/** The checks that are neither ok nor skipped: status and id, then detail and advice. */
export function findings({ checks }: UpstreamReport): readonly Pick<Check, 'id' | 'status'>[] {
  return checks
    .filter(({ status }) => status === 'warning' || status === 'fault')
    .map(({ id, status }) => ({ id, status }));
}

/** The check with this id. */
export function checkNamed({ checks }: UpstreamReport, id: string): Check {
  const found = checks.find((check) => check.id === id);
  if (found === undefined)
    throw new Error(`no check ${id} among ${checks.map((check) => check.id).join(' ')}`);
  return found;
}

/** The parsed body of a request to a scripted provider. */
export interface AskedBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly stream_options?: object;
}

type Reply = (response: ServerResponse, asked: AskedBody) => void;

/** What a provider answers; each part is well-behaved by default. */
interface Replies {
  readonly models?: (response: ServerResponse) => void;
  readonly whole?: Reply;
  readonly stream?: Reply;
  /** The answer to a question that is longer than its output cap. */
  readonly long?: Reply;
  /** The answer for a model that is not in the list. */
  readonly unknown?: Reply;
  /** Answers to all paths but the list of models and Chat Completions. */
  readonly elsewhere?: (response: ServerResponse, path: string, asked: AskedBody) => void;
}

/** A whole Chat Completions answer. */
export function wholeBody(content: unknown = 'Hi there', reason: string | null = 'stop', output = 2): string {
  return JSON.stringify({
    id: 'c-1',
    object: 'chat.completion',
    created: 1,
    model: 'tiny',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: reason }],
    usage: { prompt_tokens: 3, completion_tokens: output, total_tokens: 3 + output },
  });
}

/** A JSON error as providers of Chat Completions send it. */
export const notFound = JSON.stringify({
  error: { message: 'no such model', type: 'x', param: null, code: 'y' },
});

/** Plays a provider of Chat Completions with the model `tiny`, which answers as it should but for `replies`. */
export function playProvider(upstream: ScriptedUpstream, replies: Replies = {}): void {
  const list = JSON.stringify({ object: 'list', data: [{ id: 'tiny', object: 'model' }] });
  const {
    models = (response) => sendJson(response, 200, list),
    whole = (response) => sendJson(response, 200, wholeBody()),
    stream = (response) => sendEvents(response, chatFrames(['Hi', ' there']).join('')),
    long = (response) => sendJson(response, 200, wholeBody('one two three', 'length', 16)),
    unknown = (response) => sendJson(response, 404, notFound),
    elsewhere = (response) => sendJson(response, 404, '{}'),
  } = replies;
  upstream.play((response, { path: target, body }) => {
    const [path = ''] = target.split('?');
    if (path === '/v1/models') return models(response);
    const asked = JSON.parse(body) as AskedBody;
    if (path !== '/v1/chat/completions') return elsewhere(response, path, asked);
    if (asked.model !== 'tiny') return unknown(response, asked);
    if (asked.stream === true) return stream(response, asked);
    if (body.includes('Count from')) return long(response, asked);
    return whole(response, asked);
  });
}

/** Sends a whole event stream. */
export function sendEvents(response: ServerResponse, bytes: string | Buffer): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bytes);
}
