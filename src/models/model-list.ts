import type { ModelCatalogue } from '../domain/ports/models.ts';
import type { OfferedModel } from '../domain/routing.ts';

/** The catalogue of a config that names its models. */
export function createModelList(models: readonly OfferedModel[]): ModelCatalogue {
  const byId = new Map(models.map((model) => [model.id, model]));
  return {
    find: async (id) => byId.get(id) ?? null,
    list: async () => models,
  };
}
