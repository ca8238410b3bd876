import type { ModelCatalogue, OfferedModel } from '../domain/routing.ts';

/** A catalogue of the models that the config names. */
export function createModelList(models: readonly OfferedModel[]): ModelCatalogue {
  const byId = new Map(models.map((model) => [model.id, model]));
  return {
    find: async (id) => byId.get(id) ?? null,
    knows: (id) => byId.has(id),
    list: async () => models,
  };
}
