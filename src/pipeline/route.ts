import { isRefusal, refuse } from '../shared/errors.ts';
import { nearestName } from '../shared/nearest-name.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Availability } from '../domain/upstreams/circuit.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import { pricedAt } from '../domain/money/price-changes.ts';
import type { ModelCatalogue, OfferedModel, Route } from '../domain/routing.ts';
import { orderRoutes } from '../domain/routing.ts';
import { orderFor } from '../domain/routing/policies.ts';
import type { Ports } from './ports.ts';
import { ReceivedAnswer } from './attempts/received-answer.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { TextWork } from './stages.ts';

/** How much of an unknown model's name a refusal quotes, in UTF-16 code units. */
const maxShownChars = 128;

/** The shortest unknown name for which another one is suggested: every name is close to a shorter one. */
const minMisspeltChars = 3;

/** Finds the model that the request names, and the order in which its routes are tried. */
export async function route(key: ApiKey, request: TextRequest, ports: Ports): Promise<TextWork | Refusal> {
  const found = await findModel(request.model, key, ports.models);
  if (isRefusal(found)) return found;
  const model = pricedAt(found, ports.clock.now());
  const able = withStop(model, request.stop);
  if (isRefusal(able)) return able;
  const routes = inOrder(able, key, request, ports);
  const received = new ReceivedAnswer();
  return { kind: 'text', request, model, routes, received, ceiling: null };
}

/** The model with the routes that take these stop sequences: an upstream that never gets them would write on behind them. */
function withStop(model: OfferedModel, stop: readonly string[]): OfferedModel | Refusal {
  if (stop.length === 0) return model;
  const routes = model.routes.filter(({ dialect }) => dialect.takesStop(stop));
  if (routes.length > 0) return routes.length === model.routes.length ? model : { ...model, routes };
  return refuse(
    'unsupported_parameter',
    `Unsupported parameter: 'stop'. The model '${model.id}' takes no such stop sequences: cut the text yourself. Leave this parameter out.`,
    { param: 'stop' },
  );
}

/** The order of the routes by the model's policy; without one nothing is measured, and nothing is asked. */
function inOrder(
  model: OfferedModel,
  key: ApiKey,
  request: TextRequest,
  { clock, health, random }: Ports,
): readonly Route[] {
  const { policy } = model;
  if (policy === null) return orderRoutes(model.routes, random);
  const availability = (target: Route): Availability => health.availability(target, key.id);
  return orderFor(policy, {
    model,
    request,
    keyId: key.id,
    nowMs: clock.monotonicMs(),
    random,
    availability,
  });
}

/** Finds an offered model, or refuses with the 404 that both protocols and `/v1/models/{id}` share. */
export async function findModel(
  id: string,
  key: ApiKey,
  models: ModelCatalogue,
): Promise<OfferedModel | Refusal> {
  const offered = await models.find(id);
  if (isRefusal(offered)) return offered;
  if (offered !== null) return refuseModel(key, offered) ?? offered;
  const shown = id.length > maxShownChars ? `${id.slice(0, maxShownChars)}…` : id;
  const meant = await nearestModel(id.slice(0, maxShownChars), key, models);
  const advice = meant === null ? '' : ` Did you mean '${meant}'?`;
  return refuse(
    'model_not_found',
    `The model '${shown}' does not exist.${advice} GET /v1/models lists the available models.`,
    { param: 'model' },
  );
}

/** The name closest to an unknown one among the models that this key may use; `null` when none is close. */
async function nearestModel(wrong: string, key: ApiKey, models: ModelCatalogue): Promise<string | null> {
  const offered = await models.list();
  if (isRefusal(offered) || wrong.length < minMisspeltChars) return null;
  return nearestName(
    wrong,
    offered.filter((model) => mayUse(key, model)).map(({ id }) => id),
  );
}

/** Why a key may not use a model; `null` if it may. */
export function refuseModel(key: ApiKey, model: OfferedModel): Refusal | null {
  if (mayUse(key, model)) return null;
  return refuse('model_not_allowed', `This key may not use the model '${model.id}'.`, { param: 'model' });
}

/** Whether a key may use a model: its own list of models, if it has one, must name it. */
export function mayUse({ models }: ApiKey, { id }: OfferedModel): boolean {
  return models === null || models.includes(id);
}
