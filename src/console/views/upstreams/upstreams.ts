import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useServerTime } from '../../api/use-status.ts';
import { linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { Fault } from '../../widgets/fault.ts';
import { CopyButton } from '../../widgets/copy-button.ts';
import { shownName } from '../../widgets/name.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { ChangeLog, useChanges } from './changes.ts';
import { ShadowList } from './shadow-list.ts';
import { UpstreamCard } from './upstream-card.ts';
import { UpstreamDetail } from './upstream-detail.ts';
import { useUpstreams } from './use-upstreams.ts';
import type { Upstream } from './use-upstreams.ts';

/** The upstreams with their circuits as they open and close; one of them with its routes and a way to check it. */
export function Upstreams({ route }: { readonly route: Route }): VNode {
  const { upstreams, at, fault } = useUpstreams();
  const now = useServerTime(at);
  const changes = useChanges(upstreams, now);
  if (upstreams === null) return html`<${Fault} text=${fault} />`;
  return html`
    <${Fault} text=${fault} />
    ${
      route.id === null
        ? html`<${Cards} upstreams=${upstreams} now=${now} />`
        : html`<${Detail} key=${route.id} name=${route.id} upstreams=${upstreams} now=${now} />`
    }
    ${upstreams.length > 0 && html`<${ChangeLog} changes=${changes} />`}
  `;
}

interface Props {
  readonly upstreams: readonly Upstream[];
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

function Cards({ upstreams, now }: Props): VNode {
  if (upstreams.length === 0) return html`<${NoUpstreams} />`;
  return html`
    <ul class="cards large">
      ${upstreams.map(
        (upstream) => html`<${UpstreamCard} key=${upstream.name} upstream=${upstream} now=${now} />`,
      )}
    </ul>
    <${ShadowList} />
  `;
}

function Detail({ name, upstreams, now }: Props & { readonly name: string }): VNode {
  const upstream = upstreams.find((known) => known.name === name);
  return html`
    <p><a href=${linkTo('upstreams')}>← All upstreams</a></p>
    <${PlaceHeading}>${shownName(name)}<//>
    ${
      upstream === undefined
        ? html`<p class="empty">
            The config has no upstream of this name. It may have been removed or renamed: look at ${' '}<a
              href=${linkTo('upstreams')}
              >all upstreams</a
            >.
          </p>`
        : html`<${UpstreamDetail} upstream=${upstream} now=${now} />`
    }
  `;
}

const lines = `upstreams:
  local:
    url: http://127.0.0.1:8000/v1
    # apiKey: \${UPSTREAM_API_KEY}
models:
  small:
    routes: [{ upstream: local, model: the-name-there }]
    price: { input: "0.15", output: "0.60" } # USD per million tokens; or free: true
`;

/** What to add to the config of a gateway without upstreams. */
function NoUpstreams(): VNode {
  return html`
    <p>
      The config has no upstream. Add one, and a model that it serves; the running gateway takes it over on a
      reload.
    </p>
    <pre>${lines}</pre>
    <p><${CopyButton} text=${lines} subject="the lines" /></p>
  `;
}
