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

/**
 * Forgets the models that no route leads to any more: an alert about the circuit of one would never end. Nothing is forgotten
 * before a list of models was fetched.
 */
export function forgetUnserved(models: Models, upstreams: readonly string[], health: UpstreamHealth): void {
  const routes = [...models.offered()].flatMap((offered) => offered.routes);
  if (routes.length === 0) return;
  for (const name of upstreams) {
    const served = routes.filter(({ upstream }) => upstream === name).map(({ model }) => model);
    health.keepModels(name, new Set(served));
  }
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
