/** The protocols that we speak to providers. */
export type DialectName = 'chat';

/** One way to serve a model: the upstream by its configured name, what it speaks, and the model's name there. */
export interface Route {
  readonly upstream: string;
  readonly dialect: DialectName;
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
