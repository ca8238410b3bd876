import type { ModelCatalogue } from './ports.ts';
import type { OfferedModel } from './routing.ts';

/** The catalogue of a config that names its models. */
export function createModelList(models: readonly OfferedModel[]): ModelCatalogue {
  const byId = new Map(models.map((model) => [model.id, model]));
  return {
    find: async (id) => byId.get(id) ?? null,
    list: async () => models,
  };
}
