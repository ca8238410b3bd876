import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { OfferedModel } from '../domain/routing.ts';
import type { Ports } from '../pipeline/ports.ts';
import { findModel, mayUse } from '../pipeline/route.ts';

/** Lists the models that the key may use. */
export async function listModels(key: ApiKey, { models }: Pick<Ports, 'models'>): Promise<object | Refusal> {
  const offered = await models.list();
  if (isRefusal(offered)) return offered;
  return { object: 'list', data: offered.filter((model) => mayUse(key, model)).map(presentModel) };
}

/** Reads one model that the key may use. */
export async function readModel(
  id: string,
  key: ApiKey,
  { models }: Pick<Ports, 'models'>,
): Promise<object | Refusal> {
  const offered = await findModel(id, key, models);
  return isRefusal(offered) ? offered : presentModel(offered);
}

function presentModel({ id, createdAtSeconds }: OfferedModel): object {
  return { id, object: 'model', created: createdAtSeconds, owned_by: 'textgate' };
}
