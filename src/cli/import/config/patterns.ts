import { chooseModels } from '../../init/choose-models.ts';
import { modelsAt } from '../../../prices/find-price.ts';
import type { Taken } from './find-price.ts';
import type { Target } from './find-target.ts';
import type { Notes } from './notes.ts';
import type { Deployment } from './read-litellm.ts';

/** Whether an entry stands for several models: its name, or that at the provider, has a `*`. */
export function isPattern({ name, model }: Deployment): boolean {
  return name.includes('*') || model.includes('*');
}

/**
 * The models that a pattern stands for: those of the list of prices for that provider, since no model is served here without a
 * name and a price. `named` are the names that other entries have.
 */
export function expandPattern(
  deployment: Deployment,
  target: Target,
  named: ReadonlySet<string>,
  notes: Notes,
): readonly Taken[] {
  const { name, params, info, line } = deployment;
  const [before = '', behind, ...more] = target.model.split('*');
  const url = target.line.url.includes('${') ? '' : target.line.url;
  const listed = [...(modelsAt(url) ?? [])];
  if (behind === undefined || more.length > 0 || name.split('*').length !== 2 || listed.length === 0) {
    notes.add('none', 'model', unlisted, name);
    return [];
  }
  const upstream = {
    name: target.name,
    line: { url },
    foundBy: '',
    listed: { kind: 'listed', names: listed },
  } as const;
  const { models } = chooseModels(upstream, { models: [], price: null }, new Set());
  const taken = models.flatMap(({ route: { model } }) => {
    if (!model.startsWith(before) || !model.endsWith(behind)) return [];
    const part = model.slice(before.length, model.length - behind.length);
    const own = { name: name.replace('*', part), line, model, params, info };
    return named.has(own.name) ? [] : [{ deployment: own, target: Object.assign({}, target, { model }) }];
  });
  notes.add('changed', 'model', 'a pattern: its models with a public price are written by name', name);
  return taken;
}

const unlisted =
  'a pattern whose models are not known: write them by name, as `textgate init --upstream URL` does, or have `models: { from: UPSTREAM }` offer what an upstream lists';
