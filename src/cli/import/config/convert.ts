import { isDeepStrictEqual } from 'node:util';
import { isWritable } from '../../init/choose-models.ts';
import { isPaid, ownPrice, priceOf } from './find-price.ts';
import type { ImportedPrice, Taken } from './find-price.ts';
import { findTarget } from './find-target.ts';
import type { ImportedLine, Target } from './find-target.ts';
import { readAliases, readFallbacks } from './other-routes.ts';
import { Notes } from './notes.ts';
import { expandPattern, isPattern, unlistedModels } from './patterns.ts';
import { isOn, numberOf, settingsOf, textOf } from './read-litellm.ts';
import type { Deployment, LitellmConfig } from './read-litellm.ts';
import { keyNames, variablesIn } from './references.ts';
import { noteDeployment, noteSettings } from './settings.ts';
import { Upstreams } from './upstreams.ts';
import { weigh } from './weigh-routes.ts';
import type { Route } from './weigh-routes.ts';

/** A model of the config. */
export interface ImportedModel {
  readonly name: string;
  readonly policy: string | null;
  readonly routes: readonly Route[];
  readonly price: ImportedPrice;
}

/** A config that is taken over, and what became of each setting. */
export interface Imported {
  readonly upstreams: ReadonlyMap<string, ImportedLine>;
  readonly models: readonly ImportedModel[];
  /** What stands in place of models where the list of an upstream is offered; `null` where there are some. */
  readonly discovery: object | null;
  readonly ignoresUnknownFields: boolean;
  readonly notes: Notes;
}

/** The most routes that are tried for a request. */
const maxAttempts = 4;

/** Takes over what has a counterpart of a config of LiteLLM's proxy. */
export function convert({ deployments, root, variables }: LitellmConfig): Imported {
  const notes = new Notes();
  const module = settingsOf(root.get('litellm_settings'));
  const router = settingsOf(root.get('router_settings'));
  const found = deployments.map((deployment) => ({ deployment, target: findTarget(deployment) }));
  const upstreams = new Upstreams(
    keyNames([...variables, ...found.flatMap(usualVariables)]),
    notes,
    numberOf(router, 'stream_timeout') ?? numberOf(router, 'timeout') ?? numberOf(module, 'request_timeout'),
  );
  const { taken: served, unlisted } = chooseServed(found, notes);
  const place = ({ deployment, target }: Taken): Taken => ({
    deployment,
    target: upstreams.add(target, deployment),
  });
  const groups = Map.groupBy(served.map(place), ({ deployment }) => deployment.name);
  const [pattern] =
    groups.size > 0
      ? []
      : unlisted
          .filter(isListable)
          .toSorted((one, other) => one.target.model.length - other.target.model.length);
  const offered = pattern && place(pattern);
  for (const one of unlisted)
    if (one === pattern) noteDeployment(one, notes);
    else notes.none('model', unlistedModels, one.deployment.name);
  noteSettings(root, notes);
  const { lines, nameOf } = upstreams.finish();
  const aliases = readAliases(router, groups, notes);
  const all = new Map([
    ...groups,
    ...Array.from(aliases, ([alias, name]) => [alias, groups.get(name) ?? []] as const),
  ]);
  const behindOf = readFallbacks(root, { groups: all, aliases }, notes);
  const strategy = textOf(router, 'routing_strategy') ?? '';
  const models = Array.from(all, ([name, taken]) => {
    const behind = behindOf(name);
    const { policy, routes } = weigh({ taken, behind, strategy, nameOf }, notes);
    if (routes.length > maxAttempts)
      notes.changed('model_list', `a request is tried at ${maxAttempts} routes at the most`, name);
    return { name, policy, routes, price: notedPrice(name, taken, behind, notes) };
  });
  const ignoresUnknownFields = isOn(module, 'drop_params');
  const discovery = offered === undefined ? null : discoveryOf(offered, nameOf, notes);
  return { upstreams: lines, models, discovery, ignoresUnknownFields, notes };
}

/** A deployment, and where it is served, or why it is not. */
interface Found {
  readonly deployment: Deployment;
  readonly target: Target | string;
}

/** The variable from which an entry without a key of its own reads it. */
function usualVariables({ deployment: { params }, target }: Found): readonly string[] {
  const apiKey = typeof target === 'string' || params.has('api_key') ? null : target.line['apiKey'];
  return typeof apiKey === 'string' ? [...variablesIn(apiKey)] : [];
}

/** Whether a config can have a pattern: one * there, and one in its name. */
function isListable({ deployment: { name }, target: { model } }: Taken): boolean {
  return [name, model].every((text) => isWritable(text) && text.split('*').length === 2);
}

/** The list of an upstream in the place of a pattern, with the same names. */
function discoveryOf(
  { deployment: { name }, target }: Taken,
  nameOf: (target: Target) => string,
  notes: Notes,
) {
  notes.changed('model', 'a pattern: what the upstream lists is offered, and costs nothing', name);
  return {
    from: nameOf(target),
    ...(target.model === '*' ? {} : { allow: [target.model] }),
    ...(target.model === name ? {} : { rename: { [target.model]: name } }),
  };
}

/** The deployments that are served, with those of patterns; patterns whose models no list has; and notes of all others. */
function chooseServed(found: readonly Found[], notes: Notes) {
  const taken: Taken[] = [];
  const unlisted: Taken[] = [];
  const named = new Set(found.map(({ deployment }) => deployment.name));
  for (const { deployment, target } of found) {
    const { name } = deployment;
    if (typeof target === 'string') notes.none('model', target, name);
    else if (!isWritable(name)) notes.none('model', 'no model can have this name here', name);
    else {
      const one = { deployment, target };
      const models = isPattern(deployment) ? expandPattern(deployment, target, named) : [one];
      (models === null ? unlisted : taken).push(...(models ?? [one]));
      if (models === null) continue;
      noteDeployment(one, notes);
      if (isPattern(deployment))
        notes.changed('model', 'a pattern: its models with a public price are written by name', name);
    }
  }
  return { taken, unlisted };
}

/** The price of a model, with notes of what became of those that its entries have. */
function notedPrice(
  name: string,
  taken: readonly Taken[],
  behind: readonly Taken[],
  notes: Notes,
): ImportedPrice {
  const own = taken.flatMap(({ deployment }) => ownPrice(deployment) ?? []);
  const whole = own.filter(({ price, isHalf }) => price !== null && !isHalf);
  const found = priceOf(taken, behind);
  const isOfAll =
    whole.length === taken.length && whole.every(({ price }) => isDeepStrictEqual(price, found));
  if (whole.length > 0) notes.add('taken', 'input_cost_per_token', 'price, in USD per million tokens', name);
  if (own.length > whole.length)
    notes.changed(
      'input_cost_per_token',
      'not both of input and output, as numbers up to 9: the public list counts, else what is not there is 0',
      name,
    );
  if (own.some(({ isCut }) => isCut))
    notes.changed('*_above_*k_tokens', 'only the prices above the first threshold are taken', name);
  const isPriced = found.setting === 'price' && found.value !== 'list';
  if (taken.length > 1 && !isOfAll && (isPriced || whole.length > 0))
    notes.changed('price', 'a model has one price here: that of its first entry with a price', name);
  if (found.setting === 'free' && behind.some(isPaid))
    notes.changed(
      'fallbacks',
      'the model costs clients nothing, also where a fallback answers that has a price',
      name,
    );
  if (found.origin === 'unknown' || found.origin === 'unlisted')
    notes.changed('price', 'not in the list: clients pay nothing until you write one', name);
  return found;
}
