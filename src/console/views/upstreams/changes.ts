import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { formatTime } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import type { Upstream } from './use-upstreams.ts';

/** How many changes are kept; older ones are forgotten. */
const maxChanges = 100;

/** A change of an upstream that was seen. */
interface Change {
  /** Its number, from 1 on. */
  readonly number: number;
  /** When it was seen, by the gateway's time in milliseconds. */
  readonly atMs: number;
  readonly upstream: string;
  /** What changed: `circuit open`, `failing`. */
  readonly what: string;
  readonly mood: 'good' | 'warning' | 'bad' | 'plain';
  readonly cause: string | null;
}

const circuitChanges = {
  open: { what: 'circuit opened', mood: 'bad' },
  half_open: { what: 'circuit half open: the next request is a trial', mood: 'warning' },
  closed: { what: 'circuit closed', mood: 'good' },
} as const;

/** The changes of circuits and states since the view was opened, newest first. */
export function useChanges(upstreams: readonly Upstream[] | null, now: number): readonly Change[] {
  const before = useRef<readonly Upstream[] | null>(null);
  const count = useRef(0);
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const shape = upstreams?.map(({ name, state, circuit }) => [name, state, circuit.state]).join('\n');
  useEffect(() => {
    if (upstreams === null) return;
    const found = before.current === null ? [] : changesBetween(before.current, upstreams);
    before.current = upstreams;
    if (found.length === 0) return;
    const added = found.map((change) => Object.assign(change, { number: ++count.current, atMs: now }));
    setChanges((earlier) => [...added.toReversed(), ...earlier].slice(0, maxChanges));
  }, [shape]);
  return changes;
}

/** What is different between two lists; upstreams that only one of them has did not change their state. */
function changesBetween(
  before: readonly Upstream[],
  after: readonly Upstream[],
): readonly Omit<Change, 'number' | 'atMs'>[] {
  const earlier = new Map(before.map((upstream) => [upstream.name, upstream]));
  return after.flatMap(({ name, state, circuit, cause }) => {
    const was = earlier.get(name);
    if (was === undefined) return [];
    if (was.circuit.state !== circuit.state)
      return [
        { upstream: name, cause: circuit.state === 'open' ? cause : null, ...circuitChanges[circuit.state] },
      ];
    return was.state === state ? [] : [{ upstream: name, cause, ...stateChange(state) }];
  });
}

function stateChange(state: Upstream['state']): Pick<Change, 'what' | 'mood'> {
  if (state === 'ok') return { what: 'answers', mood: 'good' };
  if (state === 'unknown') return { what: 'not asked yet', mood: 'plain' };
  return { what: state, mood: state === 'failing' ? 'bad' : 'warning' };
}

/** The changes that were seen, newest first, each read aloud when it appears. */
export function ChangeLog({ changes }: { readonly changes: readonly Change[] }): VNode {
  return html`
    <section>
      <h2 id="changes">Since you opened this page</h2>
      <div role="log" aria-labelledby="changes">
        <ul class="log">
          ${changes.map(
            ({ number, atMs, upstream, what, mood, cause }) => html`
              <li key=${number}>
                <time class="note">${formatTime(new Date(atMs).toISOString())}</time>${' '}
                <a href=${linkTo('upstreams', upstream)}>${shownName(upstream)}</a>${' '}
                <span class=${mood}>${what}</span>
                ${cause !== null && html`<p class="note">${cause}</p>`}
              </li>
            `,
          )}
        </ul>
      </div>
      ${changes.length === 0 && html`<p class="empty">No upstream has changed its state. Changes are listed here as they come.</p>`}
    </section>
  `;
}
