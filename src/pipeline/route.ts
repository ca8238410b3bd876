import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { ModelCatalogue } from '../domain/ports/models.ts';
import { orderRoutes } from '../domain/routing.ts';
import type { Destination, OfferedModel } from '../domain/routing.ts';
import type { Exchange, Ports } from './exchange.ts';

/** Chooses where the request goes. A model's name is noted only once it is known to be a configured one. */
export async function route(
  model: string,
  key: ApiKey,
  exchange: Exchange,
  ports: Ports,
): Promise<Destination | Refusal> {
  const offered = await findModel(model, key, ports.models);
  if (isRefusal(offered)) return offered;
  exchange.notes.model = offered;
  return { model: offered, routes: orderRoutes(offered.routes, ports.random) };
}

/** Finds an offered model, or refuses with the 404 that both protocols and `/v1/models/{id}` share. */
export async function findModel(
  id: string,
  key: ApiKey,
  models: ModelCatalogue,
): Promise<OfferedModel | Refusal> {
  const offered = await models.find(id);
  if (isRefusal(offered)) return offered;
  if (offered !== null && !mayUse(key, offered))
    return refuse('model_not_allowed', `This key may not use the model '${offered.id}'.`, { param: 'model' });
  if (offered !== null) return offered;
  const shown = id.length > 128 ? `${id.slice(0, 128)}…` : id;
  return refuse(
    'model_not_found',
    `The model '${shown}' does not exist. GET /v1/models lists those on offer.`,
    {
      param: 'model',
    },
  );
}

/** Whether a key's own list of models, if it has one, names this one. */
export function mayUse({ models }: ApiKey, { id }: OfferedModel): boolean {
  return models === null || models.includes(id);
}
