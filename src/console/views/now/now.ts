import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { orDash, formatAmount, formatCount, formatDuration, formatShort } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { useServerTime, lostNotice, useStatus } from '../../api/use-status.ts';
import type { Status } from '../../api/use-status.ts';
import { Fault } from '../../widgets/fault.ts';
import { Figure, Figures } from '../../widgets/facts.ts';
import { CountBars } from '../../widgets/count-bars.ts';
import { Outcome, outcomeMood, UpstreamState } from '../../widgets/badges.ts';
import { linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { HistoryPanel } from './history.ts';
import { RunningTable, WaitingList } from './running-table.ts';

/** How many requests are shown at first, and after a wish for more: the most that the gateway tells. */
const firstRows = 200;
const maxRows = 1_000;

/** What runs now and why it waits, what ended in the last minute, and how the upstreams are. */
export function Now({ route }: { readonly route: Route }): VNode {
  const [limit, setLimit] = useState(firstRows);
  const { status, isLost } = useStatus(limit);
  const now = useServerTime(status?.at ?? null);
  const lost = isLost ? lostNotice : null;
  if (status === null) return html`<${Fault} text=${lost} />`;
  return html`
    <${Fault} text=${lost} />
    <${State} status=${status} />
    <section>
      <h2>What happened</h2>
      <${HistoryPanel} query=${route.query} />
    </section>
    <section>
      <h2>Requests in progress</h2>
      <${WaitingList} rows=${status.in_flight.data} now=${now} />
      <${RunningTable}
        rows=${status.in_flight.data}
        now=${now}
        total=${status.in_flight.running + status.in_flight.waiting}
        isComplete=${status.in_flight.all_nodes}
        onMore=${limit < maxRows ? () => setLimit(maxRows) : null}
      />
    </section>
    <div class="columns">
      <section>
        <h2>Finished in the last ${status.recent.seconds} s</h2>
        <${CountBars}
          counts=${status.recent.endings}
          label=${(name: string) => html`<${Outcome} name=${name} />`}
          moodOf=${outcomeMood}
          empty="No request has ended. How each request ends is counted here."
        />
      </section>
      <section>
        <h2>Upstreams</h2>
        <${UpstreamList} upstreams=${status.upstreams} />
      </section>
    </div>
  `;
}

/** The gateway on one line. */
function State({ status }: { readonly status: Status }): VNode {
  const { recent, ledger, in_flight: inFlight } = status;
  const { p50, p99 } = recent.first_text_ms ?? { p50: null, p99: null };
  return html`
    <${Figures}>
      <${Figure}
        label="Gateway"
        value=${status.state}
        note=${status.reason ?? `version ${status.version}`}
        mood=${status.state === 'ready' ? 'good' : 'bad'}
      />
      <${Figure} label="In progress" value=${formatCount(inFlight.running)} />
      <${Figure}
        label="Waiting"
        value=${formatCount(inFlight.waiting)}
        mood=${inFlight.waiting > 0 ? 'warning' : undefined}
      />
      <${Figure} label="Requests/s" value=${recent.per_second} />
      <${Figure}
        label="Output tokens/s"
        value=${formatShort(Math.round(recent.output_tokens / recent.seconds))}
      />
      <${Figure}
        label="Time to first text"
        value=${orDash(p50, formatDuration)}
        note=${p99 === null ? 'no stream in the last minute' : `99 % within ${formatDuration(p99)}`}
      />
      <${Figure}
        label="Open holds"
        value=${orDash(ledger.open_holds, formatCount)}
        note=${imbalanceOf(ledger.imbalance)}
        mood=${ledger.imbalance !== null && Number(ledger.imbalance) !== 0 ? 'bad' : undefined}
      />
    <//>
  `;
}

function imbalanceOf(imbalance: string | null): string {
  if (imbalance === null) return 'not yet audited';
  return Number(imbalance) === 0 ? 'ledger balanced' : `ledger differs by ${formatAmount(imbalance)}`;
}

/** How each upstream is, and why. */
function UpstreamList({ upstreams }: { readonly upstreams: Status['upstreams'] }): VNode {
  const rows = Object.entries(upstreams);
  if (rows.length === 0)
    return html`<p class="empty">There is no upstream. Add one to <code>upstreams</code> in the config.</p>`;
  return html`
    <ul class="cards">
      ${rows.map(
        ([name, { state, cause, running, waiting }]) => html`
          <li key=${name} class=${cause === undefined ? '' : 'broad'}>
            <p>
              <a href=${linkTo('upstreams', name)}><strong>${shownName(name)}</strong></a
              >${' '}
              <${UpstreamState} state=${state} />
            </p>
            <p class="note">
              ${formatCount(running)} in progress${waiting > 0 && `, ${formatCount(waiting)} waiting`}
            </p>
            ${cause !== undefined && html`<p class="cause">${cause}</p>`}
          </li>
        `,
      )}
    </ul>
  `;
}
