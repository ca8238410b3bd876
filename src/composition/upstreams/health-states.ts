import type { UpstreamState } from '../../domain/upstreams/circuit.ts';
import type { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import type { ActiveConfig } from '../active-config.ts';
import type { Models } from './models.ts';

/** The state of an upstream; one whose models all pause counts as open. */
export function stateIn(health: UpstreamHealth, name: string): UpstreamState {
  return health.pauseMs(name) > 0 ? 'open' : health.state(name);
}

/** The state of each model of an upstream that was asked for. */
export function modelStatesIn(
  health: UpstreamHealth,
  upstream: string,
): ReturnType<ActiveConfig['upstreamModelStates']> {
  return [...health.circuits(upstream).models.keys()].map((model) => {
    return { upstream, model, state: health.targetState({ upstream, model }) };
  });
}

/** Each model on offer, with whether at least one of its routes works: the circuits of its upstream and of its model there. */
export function availabilityOf(
  models: Models,
  health: UpstreamHealth,
): ReturnType<ActiveConfig['modelAvailability']> {
  return [...models.offered()].map(({ id, routes }) => [
    id,
    routes.some((route) => health.targetState(route) === 'closed'),
  ]);
}
