import type { ComponentType } from 'preact';
import type { Route } from './route.ts';

/** A view of the console. */
export interface View {
  /** Its part of the address. */
  readonly path: string;
  readonly title: string;
  load(): Promise<ComponentType<{ readonly route: Route }>>;
}

/** The views in the order of their links; the first one is shown at the start. */
export const views: readonly [View, ...View[]] = [
  { path: 'now', title: 'Now', load: async () => (await import('./views/now/now.ts')).Now },
  { path: 'usage', title: 'Usage', load: async () => (await import('./views/usage/usage.ts')).Usage },
  { path: 'keys', title: 'Keys', load: async () => (await import('./views/keys/keys.ts')).Keys },
  {
    path: 'upstreams',
    title: 'Upstreams',
    load: async () => (await import('./views/upstreams/upstreams.ts')).Upstreams,
  },
  { path: 'try', title: 'Try', load: async () => (await import('./views/try/try.ts')).Try },
];
