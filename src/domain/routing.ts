/** One way to serve a model: the upstream by its configured name, and the model's name there. */
export interface Route {
  readonly upstream: string;
  readonly model: string;
}

/** A model as the service offers it. */
export interface OfferedModel {
  readonly id: string;
  /** Seconds since 1970. */
  readonly createdAt: number;
  /** Tried in this order. */
  readonly routes: readonly Route[];
}
