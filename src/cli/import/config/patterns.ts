import { pricedModelsAt } from '../../../prices/find-price.ts';
import { isWritable } from '../../init/choose-models.ts';
import { listUrl } from './find-price.ts';
import type { Taken } from './find-price.ts';
import { otherThanText } from './find-target.ts';
import type { Target } from './find-target.ts';
import type { Deployment } from './read-litellm.ts';

/** Whether an entry stands for several models: its name, or that at the provider, has a `*`. */
export function isPattern({ name, model }: Deployment): boolean {
  return name.includes('*') || model.includes('*');
}

/**
 * The models that a pattern stands for: those of the list of prices for that provider, as no model is served here without a name
 * and a price; `null` where the list has none. `named` are the names that other entries have.
 */
export function expandPattern(
  deployment: Deployment,
  target: Target,
  named: ReadonlySet<string>,
): readonly Taken[] | null {
  const { name, params, info } = deployment;
  const [before = '', behind, ...more] = target.model.split('*');
  const models = pricedModelsAt(listUrl(target.line)).filter(
    (model) => isWritable(model) && otherThanText(model, null) === null,
  );
  if (behind === undefined || more.length > 0 || name.split('*').length !== 2 || models.length === 0)
    return null;
  return models.flatMap((model) => {
    if (!model.startsWith(before) || !model.endsWith(behind)) return [];
    const part = model.slice(before.length, model.length - behind.length);
    const own = { name: name.replace('*', () => part), model, params, info };
    return named.has(own.name) ? [] : [{ deployment: own, target: Object.assign({}, target, { model }) }];
  });
}

/** Why a pattern is left out. */
export const unlistedModels =
  'a pattern whose models are not known: `textgate init --upstream URL` writes those that an upstream lists by name, and `models: { from: NAME }` offers them';
