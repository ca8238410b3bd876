import { isWritable } from '../../init/choose-models.ts';
import { findTarget } from './find-target.ts';
import type { ImportedLine, Target } from './find-target.ts';
import { listPrice, ownPrice } from './find-price.ts';
import type { ImportedPrice, Taken } from './find-price.ts';
import { expandPattern, isPattern } from './patterns.ts';
import { Notes } from './notes.ts';
import { isOn, listOf, numberOf, settingsOf, textOf, textsOf } from './read-litellm.ts';
import type { Deployment, LitellmConfig } from './read-litellm.ts';
import { KeyNames } from './references.ts';
import { weigh } from './weigh-routes.ts';
import type { Route } from './weigh-routes.ts';
import { noteDeployment, noteSettings } from './settings.ts';
import { Upstreams } from './upstreams.ts';

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
  readonly ignoresUnknownFields: boolean;
  readonly notes: Notes;
}

/** The deployments of a model's name that are served. */
type Groups = ReadonlyMap<string, readonly Taken[]>;

/** The most routes that are tried for a request. */
const maxAttempts = 4;

/** Takes over what has a counterpart of a config of LiteLLM's proxy. */
export function convert({ deployments, root, variables }: LitellmConfig): Imported {
  const notes = new Notes();
  const upstreams = new Upstreams(new KeyNames(variables), notes);
  const settings = settingsOf(root.get('litellm_settings'));
  const router = settingsOf(root.get('router_settings'));
  const seconds =
    numberOf(router, 'stream_timeout') ??
    numberOf(router, 'timeout') ??
    numberOf(settings, 'request_timeout');
  const groups = groupDeployments(deployments, notes, (target, deployment) =>
    upstreams.add(target, deployment, seconds),
  );
  noteSettings(root, notes);
  const { lines, nameOf } = upstreams.finish();
  const fallbacks = new Fallbacks(groups, [router, settings], notes);
  const strategy = textOf(router, 'routing_strategy') ?? 'simple-shuffle';
  const models = [...groups].map(([name, taken]) => {
    const behind = fallbacks.of(name);
    const { policy, routes } = weigh({ taken, behind, strategy, nameOf }, notes);
    if (routes.length > maxAttempts)
      notes.add('changed', 'model_list', `a request is tried at ${maxAttempts} routes at the most`, name);
    return { name, policy, routes, price: priceOf(name, taken, behind, notes) };
  });
  const ignoresUnknownFields = isOn(settings, 'drop_params');
  return {
    upstreams: lines,
    models: [...models, ...aliasesOf(router, models, notes)],
    ignoresUnknownFields,
    notes,
  };
}

/** The served deployments by their names, and notes of all others. */
function groupDeployments(
  deployments: readonly Deployment[],
  notes: Notes,
  add: (target: Target, deployment: Deployment) => Target,
): Groups {
  const groups = new Map<string, Taken[]>();
  const named = new Set(deployments.map(({ name }) => name));
  for (const deployment of deployments) {
    const target = findTarget(deployment);
    if (typeof target === 'string') {
      notes.add('none', 'model', target, deployment.name);
      continue;
    }
    for (const taken of isPattern(deployment)
      ? expandPattern(deployment, target, named, notes)
      : [{ deployment, target }]) {
      const { name } = taken.deployment;
      if (!isWritable(name)) notes.add('none', 'model', 'no model can have this name here', name);
      else {
        const placed = { deployment: taken.deployment, target: add(taken.target, taken.deployment) };
        noteDeployment(placed.deployment, notes);
        const group = groups.get(name) ?? [];
        group.push(placed);
        groups.set(name, group);
      }
    }
  }
  return groups;
}

/** The groups that LiteLLM tries when one fails, by its rules. */
class Fallbacks {
  readonly #groups: Groups;
  readonly #byName = new Map<string, readonly string[]>();
  readonly #notes: Notes;

  constructor(groups: Groups, sections: readonly ReturnType<typeof settingsOf>[], notes: Notes) {
    this.#groups = groups;
    this.#notes = notes;
    for (const section of sections) {
      const named = listOf(section.get('fallbacks')).flatMap((entry) => Array.from(settingsOf(entry)));
      for (const [name, value] of named) if (!this.#byName.has(name)) this.#byName.set(name, textsOf(value));
      const usual = textsOf(section.get('default_fallbacks'));
      if (usual.length > 0 && !this.#byName.has('*')) this.#byName.set('*', usual);
    }
  }

  /** The targets behind those of a model; groups of several deployments have all of theirs here. */
  of(name: string): readonly Taken[] {
    const stripped = name.slice(name.indexOf('/') + 1);
    const names = this.#byName.get(name) ?? this.#byName.get(stripped) ?? this.#byName.get('*') ?? [];
    const behind = names.filter((other) => other !== name);
    return behind.flatMap((other) => {
      const taken = this.#groups.get(other);
      if (taken === undefined)
        this.#notes.add('none', 'fallbacks', 'one of them is no model that is taken over', name);
      return taken ?? [];
    });
  }
}

function priceOf(
  name: string,
  taken: readonly Taken[],
  behind: readonly Taken[],
  notes: Notes,
): ImportedPrice {
  const own = taken.flatMap(({ deployment }) => ownPrice(deployment) ?? []);
  const [first] = own;
  if (behind.length > 0)
    notes.add('changed', 'fallbacks', 'further routes: an answer of theirs costs what the model costs', name);
  if (first !== undefined) {
    if (
      own.length < taken.length ||
      own.some(({ value }) => JSON.stringify(value) !== JSON.stringify(first.value))
    )
      notes.add(
        'changed',
        'input_cost_per_token',
        'a model has one price: that of the first entry that has one',
        name,
      );
    return first;
  }
  const listed = listPrice(
    taken,
    behind.map(({ target }) => target),
  );
  if (listed.origin === 'unknown')
    notes.add(
      'changed',
      'price',
      'not in the list of prices: the model costs clients nothing until you write one',
      name,
    );
  return listed;
}

/** Further names of models, as models of their own. */
function aliasesOf(
  router: ReturnType<typeof settingsOf>,
  models: readonly ImportedModel[],
  notes: Notes,
): readonly ImportedModel[] {
  return [...settingsOf(router.get('model_group_alias'))].flatMap(([name, value]) => {
    const meant = value.kind === 'text' ? value.text : textOf(settingsOf(value), 'model');
    const model = models.find((one) => one.name === meant);
    if (model !== undefined && isWritable(name) && !models.some((one) => one.name === name))
      return [Object.assign({}, model, { name })];
    notes.add(
      'none',
      'model_group_alias',
      'it leads to no model that is taken over, or is the name of one',
      name,
    );
    return [];
  });
}
