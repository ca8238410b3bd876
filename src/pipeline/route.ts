import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ModelCatalogue } from '../domain/ports.ts';
import type { Destination, OfferedModel } from '../domain/routing.ts';
import type { Exchange, Ports } from './exchange.ts';

/** Chooses where the request goes. A model's name is noted only once it is known to be a configured one. */
export async function route(model: string, exchange: Exchange, ports: Ports): Promise<Destination | Refusal> {
  const offered = await findModel(model, ports.models);
  if (isRefusal(offered)) return offered;
  exchange.notes.model = offered;
  const [first] = offered.routes;
  if (first === undefined) return refuse('upstream_unavailable', `The model '${model}' has no route.`);
  exchange.notes.route = first;
  return { model: offered, route: first };
}

/** Finds an offered model, or refuses with the 404 that both protocols and `/v1/models/{id}` share. */
export async function findModel(id: string, models: ModelCatalogue): Promise<OfferedModel | Refusal> {
  const offered = await models.find(id);
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
