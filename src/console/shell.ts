import type { ComponentType, VNode } from 'preact';
import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { linkTo, useRoute } from './route.ts';
import type { Route } from './route.ts';
import { endSession, SessionContext } from './api/session.ts';
import type { Session } from './api/session.ts';
import { errorText } from './api/admin-api.ts';
import { useAction } from './api/use-action.ts';
import { SearchField } from './search-field.ts';
import { Fault } from './widgets/fault.ts';
import { formatTime, viewersZone } from './widgets/format.ts';
import { isTyping } from './widgets/is-typing.ts';

/** A view of the console. */
interface View {
  /** Its part of the address. */
  readonly path: string;
  readonly title: string;
  load(): Promise<ComponentType<{ readonly route: Route }>>;
}

/** The views in the order of their links; the first one is shown at the start. */
const views: readonly [View, ...View[]] = [
  { path: 'now', title: 'Now', load: async () => (await import('./views/now/now.ts')).Now },
  {
    path: 'failures',
    title: 'Failures',
    load: async () => (await import('./views/failures/failures.ts')).Failures,
  },
  {
    path: 'latency',
    title: 'Latency',
    load: async () => (await import('./views/latency/latency.ts')).Latency,
  },
  { path: 'usage', title: 'Usage', load: async () => (await import('./views/usage/usage.ts')).Usage },
  { path: 'keys', title: 'Keys', load: async () => (await import('./views/keys/keys.ts')).Keys },
  {
    path: 'upstreams',
    title: 'Upstreams',
    load: async () => (await import('./views/upstreams/upstreams.ts')).Upstreams,
  },
  { path: 'audit', title: 'Audit', load: async () => (await import('./views/audit/audit.ts')).Audit },
  { path: 'try', title: 'Playground', load: async () => (await import('./views/try/try.ts')).Try },
];

/** What the field at the top finds, which no link leads to. */
const searchView: View = {
  path: 'search',
  title: 'Search',
  load: async () => (await import('./views/search/search.ts')).Search,
};

interface Props {
  readonly session: Session;
  readonly onSession: (session: Session) => void;
}

/** What is around every view: the way to the others, and who is logged in. */
export function Shell({ session, onSession }: Props): VNode {
  const route = useRoute();
  const current = [...views, searchView].find(({ path }) => path === route.view) ?? views[0];
  const { run: logOut, error } = useAction(async () => onSession(await endSession()));
  const until = session.expires_at === null ? '' : formatTime(session.expires_at);
  return html`
    <${SessionContext.Provider} value=${session}>
      <header>
        <span class="brand">textgate</span>
        <nav aria-label="Views">
          ${views.map(
            ({ path, title }) => html`
              <a key=${path} href=${linkTo(path)} aria-current=${path === current.path ? 'page' : undefined}>
                ${title}
              </a>
            `,
          )}
        </nav>
        <${SearchField} />
        <div class="who">
          ${session.role === 'read_only' && html`<span class="badge plain">read-only</span>`}
          <a href="../docs/">Documentation</a>
          <button
            type="button"
            class="small"
            title=${`The session ends at ${until}`}
            onClick=${() => logOut()}
          >
            Log out
          </button>
        </div>
      </header>
      <main>
        <${Fault} text=${error} />
        <${ViewPlace} key=${current.path} view=${current} route=${route} />
      </main>
      <footer class="note">
        Times are those of your zone, ${viewersZone}, where nothing else is said; the gateway's logs, files
        and API have them in UTC.
      </footer>
    <//>
  `;
}

/** Loads a view when it is shown for the first time. */
function ViewPlace({ view, route }: { readonly view: View; readonly route: Route }): VNode {
  const [component, setComponent] = useState<{ readonly shown: Awaited<ReturnType<View['load']>> } | null>(
    null,
  );
  const [error, setError] = useState<string | null>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${view.title} – textgate`;
    view.load().then(
      (shown) => setComponent({ shown }),
      (failure: unknown) => setError(errorText(failure)),
    );
    // After a link was followed by keyboard, the next key goes on in the view, not in front of the links; but who began to
    // search meanwhile goes on.
    if (!isTyping()) title.current?.focus();
  }, []);
  useEffect(() => {
    // A link within the view led elsewhere in it, and is gone with the focus: what shows now did not take it.
    if (document.activeElement === document.body) title.current?.focus();
  }, [location.hash]);
  return html`
    <h1 ref=${title} tabindex="-1">${view.title}</h1>
    <${Fault} text=${error} />
    ${component !== null && html`<${component.shown} route=${route} />`}
  `;
}
