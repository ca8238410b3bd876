import type { OfferedModel } from '../routing.ts';
import type { Refusal } from '../../shared/errors.ts';

/** The offered models, from the config or discovered from an upstream. */
export interface ModelCatalogue {
  find(id: string): Promise<OfferedModel | null | Refusal>;
  list(): Promise<readonly OfferedModel[] | Refusal>;
}
