import { isDeepStrictEqual } from 'node:util';
import { isWritable } from '../../init/choose-models.ts';
import { hasOtherThresholds, hasOwnPrice, listPrice, ownPrice } from './find-price.ts';
import type { ImportedPrice, Taken } from './find-price.ts';
import { findTarget } from './find-target.ts';
import type { ImportedLine, Target } from './find-target.ts';
import { Notes } from './notes.ts';
import { expandPattern, isPattern, unlistedModels } from './patterns.ts';
import { isOn, listOf, numberOf, settingsOf, textOf, textsOf } from './read-litellm.ts';
import type { Deployment, LitellmConfig } from './read-litellm.ts';
import type { Settings } from './file-values.ts';
import { KeyNames, variablesIn } from './references.ts';
import { noteDeployment, noteSettings } from './settings.ts';
import { Upstreams } from './upstreams.ts';
import { policies, weigh } from './weigh-routes.ts';
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
  /** The upstream whose list is offered in place of models; `null` where there are some. */
  readonly discovery: Discovery | null;
  readonly ignoresUnknownFields: boolean;
  readonly notes: Notes;
}

/** `models` of a config that offers what an upstream lists. */
interface Discovery {
  readonly from: string;
  readonly allow?: readonly string[];
  readonly rename?: Readonly<Record<string, string>>;
}

/** The most routes that are tried for a request. */
const maxAttempts = 4;

/** Takes over what has a counterpart of a config of LiteLLM's proxy. */
export function convert({ deployments, root, variables }: LitellmConfig): Imported {
  const notes = new Notes();
  const module = settingsOf(root.get('litellm_settings'));
  const router = settingsOf(root.get('router_settings'));
  const upstreams = new Upstreams(
    new KeyNames([...variables, ...usualVariables(deployments)]),
    notes,
    secondsOf(router, module),
  );
  const { groups, unlisted } = groupDeployments(deployments, upstreams, notes);
  const [pattern] =
    groups.size === 0 ? unlisted.toSorted((one, other) => lengthOf(one) - lengthOf(other)) : [];
  const discovered = pattern && { ...pattern, target: upstreams.add(pattern.target, pattern.deployment) };
  for (const { deployment } of unlisted)
    if (deployment !== pattern?.deployment) notes.none('model', unlistedModels, deployment.name);
  noteSettings(root, notes);
  const { lines, nameOf } = upstreams.finish();
  const strategy = strategyOf(router, notes);
  const fallbacksOf = readFallbacks([router, module]);
  const models = [...groups].map(([name, taken]) => {
    const behind = fallbacksOf(name).flatMap((other) => groups.get(other) ?? noteMissing(name, notes));
    const { policy, routes } = weigh({ taken, behind, strategy, nameOf }, notes);
    if (routes.length > maxAttempts)
      notes.changed('model_list', `a request is tried at ${maxAttempts} routes at the most`, name);
    return { name, policy, routes, price: priceOf(name, taken, behind, notes) };
  });
  const aliases = aliasesOf(settingsOf(router.get('model_group_alias')), models, notes);
  const ignoresUnknownFields = isOn(module, 'drop_params');
  const discovery = discovered === undefined ? null : discoveryOf(discovered, nameOf, notes);
  return { upstreams: lines, models: [...models, ...aliases], discovery, ignoresUnknownFields, notes };
}

/** The variables that entries without a key of their own read it from. */
function usualVariables(deployments: readonly Deployment[]): readonly string[] {
  return deployments.flatMap((deployment) => {
    const target = deployment.params.has('api_key') ? '' : findTarget(deployment);
    const apiKey = typeof target === 'string' ? undefined : target.line['apiKey'];
    return typeof apiKey === 'string' ? [...variablesIn(apiKey)] : [];
  });
}

function lengthOf({ target }: Taken): number {
  return target.model.length;
}

/** The list of an upstream in the place of a pattern, with the same names. */
function discoveryOf(
  { deployment: { name }, target }: Taken,
  nameOf: (target: Target) => string,
  notes: Notes,
): Discovery {
  notes.changed('model', 'a pattern: what the upstream lists is offered, and costs nothing', name);
  return {
    from: nameOf(target),
    ...(target.model === '*' ? {} : { allow: [target.model] }),
    ...(target.model === name ? {} : { rename: { [target.model]: name } }),
  };
}

/** The timeout of deployments that have none, in seconds. */
function secondsOf(router: Settings, module: Settings): number | null {
  const own = numberOf(router, 'stream_timeout') ?? numberOf(router, 'timeout');
  return own ?? numberOf(module, 'request_timeout');
}

function strategyOf(router: Settings, notes: Notes): string {
  const strategy = textOf(router, 'routing_strategy') ?? 'simple-shuffle';
  if (strategy !== 'simple-shuffle' && !policies.has(strategy))
    notes.changed('router_settings.routing_strategy', 'not known here: requests are shared by weight');
  return strategy;
}

/** The served deployments by their names, patterns whose models no list has, and notes of all others. */
function groupDeployments(deployments: readonly Deployment[], upstreams: Upstreams, notes: Notes) {
  const groups = new Map<string, Taken[]>();
  const unlisted: Taken[] = [];
  const named = new Set(deployments.map(({ name }) => name));
  for (const deployment of deployments) {
    const { name } = deployment;
    const target = findTarget(deployment);
    if (typeof target === 'string') notes.none('model', target, name);
    else if (!isWritable(name)) notes.none('model', 'no model can have this name here', name);
    else {
      const found = isPattern(deployment)
        ? expandPattern(deployment, target, named)
        : [{ deployment, target }];
      if (found === null) unlisted.push({ deployment, target });
      else if (isPattern(deployment))
        notes.changed('model', 'a pattern: its models with a public price are written by name', name);
      noteDeployment(deployment, notes);
      for (const taken of found ?? []) {
        const placed = {
          deployment: taken.deployment,
          target: upstreams.add(taken.target, taken.deployment),
        };
        const group = groups.get(taken.deployment.name);
        if (group === undefined) groups.set(taken.deployment.name, [placed]);
        else group.push(placed);
      }
    }
  }
  return { groups, unlisted };
}

/** The names of the groups that LiteLLM tries when one fails: those of its name, or those of all. */
function readFallbacks(sections: readonly Settings[]): (name: string) => readonly string[] {
  const byName = new Map<string, readonly string[]>();
  for (const section of sections) {
    for (const entry of listOf(section.get('fallbacks')))
      for (const [name, names] of settingsOf(entry)) if (!byName.has(name)) byName.set(name, textsOf(names));
    const usual = textsOf(section.get('default_fallbacks'));
    if (usual.length > 0 && !byName.has('*')) byName.set('*', usual);
  }
  return (name) => {
    const withoutProvider = name.slice(name.indexOf('/') + 1);
    const names = byName.get(name) ?? byName.get(withoutProvider) ?? byName.get('*') ?? [];
    return names.filter((other) => other !== name);
  };
}

function noteMissing(name: string, notes: Notes): readonly Taken[] {
  notes.none('fallbacks', 'one of them is no model that is taken over', name);
  return [];
}

function priceOf(
  name: string,
  taken: readonly Taken[],
  behind: readonly Taken[],
  notes: Notes,
): ImportedPrice {
  const own = taken.flatMap(({ deployment }) => ownPrice(deployment) ?? []);
  const given = taken.filter(({ deployment }) => hasOwnPrice(deployment));
  const [first = listPrice(taken, behind)] = own;
  const isOfAll =
    own.length === taken.length && own.every(({ value }) => isDeepStrictEqual(value, first.value));
  if (own.length > 0) notes.add('taken', 'input_cost_per_token', 'price, in USD per million tokens', name);
  if (own.length < given.length)
    notes.changed(
      'input_cost_per_token',
      'not one of input and output, of $9 at most: the public list counts, else what is missing is 0',
      name,
    );
  if (taken.some(({ deployment }) => hasOtherThresholds(deployment)))
    notes.changed('*_above_*k_tokens', 'only the prices above the first threshold are taken', name);
  if (taken.length > 1 && !isOfAll && first.value !== 'list' && first.value !== true)
    notes.changed('price', 'a model has one price here: that of its first entry with a price', name);
  if (first.origin === 'unknown' || first.origin === 'unlisted')
    notes.changed('price', 'not in the list: clients pay nothing until you write one', name);
  return first;
}

/** Further names of models, as models of their own. */
function aliasesOf(
  aliases: Settings,
  models: readonly ImportedModel[],
  notes: Notes,
): readonly ImportedModel[] {
  const byName = new Map(models.map((model) => [model.name, model]));
  return [...aliases].flatMap(([name, value]) => {
    const meant = value.kind === 'text' ? value.text : textOf(settingsOf(value), 'model');
    const model = byName.get(meant ?? '');
    if (model !== undefined && isWritable(name) && !byName.has(name))
      return [Object.assign({}, model, { name })];
    notes.none('model_group_alias', 'leads to no model, or is the name of one', name);
    return [];
  });
}
