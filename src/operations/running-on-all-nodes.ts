import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';

/** The requests of this process, and those of the others that share its database. */
export interface JoinedRequests {
  readonly here: RunningRequests;
  /** The lists of the others; its `count` counts the slots of all processes. */
  readonly elsewhere: RunningRequests;
  /** The name of this process. */
  readonly name: string;
}

/** The requests in progress on all processes that share a database. */
export function joinRunning({ here, elsewhere, name }: JoinedRequests): RunningRequests {
  return {
    async list() {
      const [own, others] = await Promise.all([here.list(), elsewhere.list()]);
      return [...own.map(onNode(name)), ...others].toSorted(byArrival);
    },
    count: (keyIds) => elsewhere.count(keyIds),
    cancel: async (requestId, keyId) =>
      (await here.cancel(requestId, keyId)) || elsewhere.cancel(requestId, keyId),
  };
}

function onNode(node: string): (request: RunningRequest) => RunningRequest {
  return (request) => Object.assign({}, request, { node });
}

function byArrival(one: RunningRequest, other: RunningRequest): number {
  return one.createdAtMs - other.createdAtMs;
}
