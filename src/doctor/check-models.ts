import { count } from '../shared/count.ts';
import { matchName } from '../shared/name-pattern.ts';
import { nearestName } from '../shared/nearest-name.ts';
import type { ModelSource } from '../domain/routing.ts';
import { classifyStatus } from '../protocol/upstream/classify-error.ts';
import { readModels } from '../protocol/upstream/read-models.ts';
import { createSanitiser } from '../protocol/upstream/words/sanitise.ts';
import { addressOf } from '../domain/diagnosis/call-target.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import { callUpstream, readText } from './ask.ts';
import { failedCall, wordsOf } from './explain.ts';
import { fault, ok, skipped, warning } from './report.ts';
import type { Check } from './report.ts';
import { quote } from './without-secrets.ts';
import type { DoctorPorts, Target } from './target.ts';

/** An upstream's list of models, and what its checks found. */
export interface CheckedModels {
  readonly checks: readonly Check[];
  /** The model to ask; `null` if none is known. */
  readonly model: string | null;
  /** The status of the list's answer; `null` without one. */
  readonly status: number | null;
  /** Whether the answer was a list of models. */
  readonly hasList: boolean;
}

/** Fetches the list of models, and looks up those that are asked or that the config's routes name. */
export async function checkModels(target: Target, ports: DoctorPorts): Promise<CheckedModels> {
  const { upstream, dialect } = target.source;
  const call = { upstream, method: 'GET', path: dialect.modelsPath, body: null, stream: false } as const;
  const startedMs = ports.clock.monotonicMs();
  const answer = await callUpstream(call, ports);
  const body = answer.kind === 'answer' ? await readText(answer) : answer;
  const ms = ports.clock.monotonicMs() - startedMs;
  const status = answer.kind === 'answer' ? answer.status : null;
  const listed = status === 200 && typeof body === 'string' ? readModels(body) : null;
  if (listed !== null) {
    const names = listed.map(({ name }) => name);
    return { ...findModels(target, names, ms), status, hasList: true };
  }
  const failed = { ...failedList(call.path, answer, body, target, ports), ms };
  // Many servers have no list, and need none if the models are named.
  const isNeeded = target.model === null || status === null;
  const check: Check = isNeeded ? failed : { ...failed, status: 'warning' };
  return { checks: [check], model: target.model, status, hasList: false };
}

/** Names the models of the routes that are not asked: a fault of theirs stays unseen. */
export function checkOtherModels({ routed, source }: Target, asked: string): readonly Check[] {
  const others = [...new Set(routed)].filter((name) => name !== asked);
  if (others.length === 0) return [];
  const named = others.slice(0, maxNamed).map((name) => quote(name, source));
  const rest = others.length > maxNamed ? ` and ${others.length - maxNamed} more` : '';
  return [skipped('other_models', `not asked: ${named.join(', ')}${rest} (--model asks one of them)`)];
}

/** How many models that are not asked are named. */
const maxNamed = 5;

/** The check of a call that brought no list: no answer, an error status, or a body that is none, whole or not. */
function failedList(
  path: string,
  answer: UpstreamAnswer | UpstreamFault,
  body: string | UpstreamFault | null,
  target: Target,
  ports: DoctorPorts,
): Check {
  const call = { method: 'GET', path } as const;
  const isGood = answer.kind === 'answer' && answer.status === 200;
  if (isGood && body === null)
    return fault(
      'models',
      `GET ${addressOf(target.source.target, path)}: the list is over 1 MiB, and is not read`,
      'Name the models in a config.',
    );
  const result = isGood && body !== null && typeof body !== 'string' ? body : answer;
  const check = failedCall('models', call, result, target, ports);
  const words = answer.kind === 'answer' && typeof body === 'string' ? wordsIn(body, answer, target) : '';
  return { ...check, detail: check.detail + words };
}

/** What an error body says. */
function wordsIn(body: string, { status }: UpstreamAnswer, { source }: Target): string {
  if (status < 300) return '';
  const sanitise = createSanitiser({ turns: [], clientKey: '', upstream: source.secrets, names: [] });
  return wordsOf(classifyStatus(status, body, null, sanitise));
}

function findModels(
  { model, routed, allow, source }: Target,
  names: readonly string[],
  ms: number,
): Pick<CheckedModels, 'checks' | 'model'> {
  const offered = names.find((name) => allow.some((pattern) => matchName(pattern, name) !== null));
  const asked = model ?? offered ?? null;
  const wanted = [...new Set([...(model === null ? [] : [model]), ...routed])];
  const known = new Set(names);
  const missing = wanted.filter((name) => !known.has(name.replace(/^models\//, '')));
  const list =
    names.length === 0
      ? warning('models', 'the list of models is empty', 'Load a model in the server.', ms)
      : ok('models', `${count(names.length, 'model')} listed${askedFrom(asked, model, source)}`, ms);
  return { checks: [list, ...missing.map((name) => missingModel(name, names, source))], model: asked };
}

function askedFrom(asked: string | null, chosen: string | null, source: ModelSource): string {
  if (asked === null) return ', none of them allowed';
  const quoted = quote(asked, source);
  return chosen === null ? `; the first one is asked: ${quoted}` : `; ${quoted} is asked`;
}

function missingModel(name: string, names: readonly string[], source: ModelSource): Check {
  const nearest = nearestName(name, names);
  const hint = nearest === null ? '' : ` (did you mean ${quote(nearest, source)}?)`;
  return warning(
    'model',
    `${quote(name, source)} is not in the list of models${hint}`,
    'Correct the name of the model, or check that the server has it.',
  );
}
