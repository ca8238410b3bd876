import { dialects } from '../protocol/upstream/dialects.ts';
import { checkAnswer, judgeObservation, noSuchPath } from './check-answer.ts';
import { ask } from './ask.ts';
import type { Asked, Observation } from './ask.ts';
import { checkConnection } from './check-connection.ts';
import { checkKey, checkWrongKey, keyStatuses, checkUnknownModel } from './check-refusals.ts';
import { checkLength, checkStop, checkUsage } from './check-endings.ts';
import { checkModels, checkOtherModels } from './check-models.ts';
import { skipped, worstOf } from './report.ts';
import type { Check, UpstreamReport } from './report.ts';
import { isDemo } from './target.ts';
import type { DoctorPorts, Target } from './target.ts';
import { isOfResponses } from './inspect-responses.ts';

/** The question, and its output cap in tokens: enough for a model that thinks a little before it answers. */
const shortText = 'Say hi.';
const shortCap = 256;

/**
 * Examines one upstream by sending it what the gateway would send: at most sixteen calls, each within `callMs`, and a few
 * hundred tokens. The first fault of the connection or of the key ends it.
 */
export async function examine(target: Target, ports: DoctorPorts): Promise<UpstreamReport> {
  const checks = [...told(await checkConnection(target, ports), ports)];
  if (worstOf(checks) !== 'fault') checks.push(...(await checkCalls(target, ports)));
  const url = isDemo(target) ? target.url.href : target.source.target.base;
  return { name: target.name, url, status: worstOf(checks), checks };
}

/** Tells of checks as they are done. */
function told(checks: readonly Check[], { onChecks }: DoctorPorts): readonly Check[] {
  onChecks(checks);
  return checks;
}

/** Checks that failed because of the key. */
function asKey(checks: readonly Check[]): readonly Check[] {
  return checks.map((check) => ({ ...check, id: 'key' }));
}

async function checkCalls(target: Target, ports: DoctorPorts): Promise<readonly Check[]> {
  if (!target.hasModels)
    return told([skipped('answers', 'no model is routed to it: name one with --model')], ports);
  const { checks, model, status, hasList } = await checkModels(target, ports);
  if (model === null) {
    if (keyStatuses.has(status ?? 0)) return told(asKey(checks), ports);
    return told([...checks, skipped('answers', 'no model is known: name one with --model')], ports);
  }
  told(checks, ports);
  const main = await checkProtocol(model, hasList, target, ports);
  const isKeyAtFault = main.checks.some((check) => check.id === 'key' && check.status === 'fault');
  // The fault of the key is reported once: the list may have failed for the same reason.
  if (isKeyAtFault && keyStatuses.has(status ?? 0))
    return [skipped('models', `the list needs an accepted key (status ${status})`), ...main.checks];
  const isChat = main.dialect !== null && main.dialect !== 'responses';
  // The demo has Chat Completions only.
  const both = isChat && target.responses !== 'left_out' && !isDemo(target);
  return [
    ...checks,
    ...told(isKeyAtFault || isDemo(target) ? [] : checkOtherModels(target, model), ports),
    ...main.checks,
    ...told(both ? await checkResponses(model, hasList, target, ports) : [], ports),
  ];
}

/** The checks of one protocol. */
interface CheckedProtocol {
  readonly checks: readonly Check[];
  /** The dialect in which the upstream answered; `null` if it does not accept the key. */
  readonly dialect: string | null;
}

async function checkProtocol(
  model: string,
  hasList: boolean,
  target: Target,
  ports: DoctorPorts,
): Promise<CheckedProtocol> {
  const configured = { dialect: target.dialect, source: target.source, hasList };
  const question = { model, text: shortText, stream: false, maxOutputTokens: shortCap };
  const whole = await checkAnswer(`${target.dialect}.whole`, question, configured, target, ports);
  if (keyStatuses.has(whole.refused?.status ?? 0))
    return { checks: told(asKey(whole.checks), ports), dialect: null };
  const { asked } = whole;
  const { dialect } = asked;
  if (whole.read === null) return { checks: told(whole.checks, ports), dialect };
  const key = checkKey(whole.read, target);
  told([key, ...whole.checks], ports);
  if (key.status === 'fault') return { checks: [key, ...whole.checks], dialect: null };
  const streamed = { ...question, stream: true };
  const stream = await checkAnswer(`${dialect}.stream`, streamed, asked, target, ports);
  told(stream.checks, ports);
  const checks = [
    key,
    ...told(await checkWrongKey(model, asked, target, ports), ports),
    ...whole.checks,
    ...stream.checks,
    ...told(checkUsage(`${dialect}.usage`, { whole: whole.read, stream: stream.read }, stream.asked), ports),
    ...told([await checkLength(`${dialect}.length`, model, asked, ports)], ports),
    ...told(await checkStop(`${dialect}.stop`, model, asked, ports), ports),
    // The demo has no models but answers for any.
    ...(isDemo(target)
      ? []
      : told([await checkUnknownModel(`${dialect}.unknown_model`, asked, ports)], ports)),
  ];
  return { checks, dialect };
}

/** Tests the Responses API beside another protocol, if the upstream has it. */
async function checkResponses(
  model: string,
  hasList: boolean,
  target: Target,
  ports: DoctorPorts,
): Promise<readonly Check[]> {
  const source = { ...target.source, dialect: dialects.responses };
  const asked: Asked = { dialect: 'responses', source, hasList };
  const askIn = (stream: boolean): Promise<Observation> =>
    ask({ model, text: shortText, stream, maxOutputTokens: shortCap }, asked.source, ports);
  const streamed = await askIn(true);
  const missing = whyMissing(streamed, target);
  if (missing !== null) return [skipped('responses.stream', missing)];
  const whole = await askIn(false);
  const read = {
    whole: whole.kind === 'read' ? whole : null,
    stream: streamed.kind === 'read' ? streamed : null,
  };
  return [
    ...judgeObservation('responses.whole', whole, asked, target, ports),
    ...judgeObservation('responses.stream', streamed, asked, target, ports),
    ...checkUsage('responses.usage', read, asked),
    ...(read.whole === null ? [] : [await checkLength('responses.length', model, asked, ports)]),
  ];
}

/**
 * Why an upstream does not seem to have the Responses API; `null` if it seems to. Servers without it answer unknown
 * paths in many ways; one whose config names it has it, unless it says that the path is not served.
 */
function whyMissing(answer: Observation, { responses }: Target): string | null {
  const isNamed = responses === 'named';
  switch (answer.kind) {
    case 'unanswered':
      return isNamed ? null : 'no Responses API was found at this URL (no answer)';
    case 'refused':
      if (noSuchPath.has(answer.status))
        return `there is no Responses API at this URL (status ${answer.status})`;
      return isNamed ? null : `no Responses API was found at this URL (status ${answer.status})`;
    case 'read':
      return isNamed || isOfResponses(answer.bytes)
        ? null
        : `no Responses API was found at this URL (status ${answer.status} with another body)`;
  }
}
