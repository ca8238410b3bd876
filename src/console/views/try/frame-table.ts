import { html } from 'htm/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { CopyButton } from '../../widgets/copy-button.ts';
import { Field } from '../../widgets/field.ts';
import { formatCount } from '../../widgets/format.ts';
import { ShowMore } from '../../widgets/data-table.ts';
import type { Frame, Run } from './run.ts';

/** How many rows are drawn while frames come, since each change has the whole table laid out again. */
const maxRowsWhileRunning = 100;

/** How many rows are drawn at the end, and how many more at each wish: thousands at once would stop the page for a second. */
const firstRows = 200;
const moreRows = 500;

/** The most letters of a frame that its row shows; copies are whole. */
const maxShown = 1_000;

/** The frames of an answer with their times, with a filter, and a way to copy them. */
export function FrameTable({ run }: { readonly run: Run }): VNode {
  const [filter, setFilter] = useState('');
  const [limit, setLimit] = useState(firstRows);
  const { frames, frameCount } = run;
  const isRunning = run.ending === null;
  const found = useMemo(() => filterFrames(frames, filter), [frames, filter]);
  const shown = useMemo(
    () => found.slice(-(isRunning ? maxRowsWhileRunning : limit)),
    [found, isRunning, limit],
  );
  useEffect(() => {
    if (isRunning) setLimit(firstRows);
  }, [isRunning]);
  const hidden = frameCount - frames.length;
  return html`
    <${Field} label="Filter frames" type="search" value=${filter} onInput=${setFilter} />
    <p class="note">
      ${formatCount(shown.length)} of ${formatCount(frameCount)} frames are shown, the latest ones; times are
      milliseconds.${hidden > 0 && ` The first ${formatCount(hidden)} are no longer kept.`}
    </p>
    ${!isRunning && found.length > 0 && html`<${CopyAll} frames=${found} />`}
    ${
      shown.length === 0
        ? html`<p class="empty">${frameCount === 0 ? 'No frame has come.' : 'No frame has this text.'}</p>`
        : html`<${Rows} frames=${shown} />`
    }
    ${
      !isRunning &&
      html`<${ShowMore}
        shown=${shown.length}
        total=${found.length}
        plural=${filter.trim() === '' ? 'kept frames' : 'frames with this text'}
        onMore=${() => setLimit(limit + moreRows)}
      />`
    }
  `;
}

/** Not a `DataTable`: ten thousand frames may come in a second, and only the rows of new ones may cost anything. */
function Rows({ frames }: { readonly frames: readonly Frame[] }): VNode {
  return html`
    <div class="scroll frames" role="region" aria-label="Frames of the answer" tabindex="0">
      <table>
        <caption class="unseen">
          Frames of the answer
        </caption>
        <thead>
          <tr>
            <th scope="col" class="number">No.</th>
            <th scope="col" class="number">Time</th>
            <th scope="col" class="number">Gap</th>
            <th scope="col">Kind</th>
            <th scope="col">Content</th>
          </tr>
        </thead>
        <tbody>
          ${frames.map(rowOf)}
        </tbody>
      </table>
    </div>
  `;
}

/** The rows that were written: a frame never changes, and the same row again is not compared with itself. */
const rows = new WeakMap<Frame, VNode>();

function rowOf(frame: Frame): VNode {
  const known = rows.get(frame);
  if (known !== undefined) return known;
  const { number, atMs, gapMs, kind, text } = frame;
  const row: VNode = html`
    <tr key=${number}>
      <th scope="row" class="number">${number}</th>
      <td class="number">${atMs.toFixed(1)}</td>
      <td class="number">${gapMs.toFixed(1)}</td>
      <td>${kind}</td>
      <td class="wide"><code>${shorten(text)}</code></td>
    </tr>
  `;
  rows.set(frame, row);
  return row;
}

function shorten(text: string): string {
  if (text.length <= maxShown) return text;
  return `${text.slice(0, maxShown)}… (${formatCount(text.length)} letters)`;
}

function filterFrames(frames: readonly Frame[], filter: string): readonly Frame[] {
  const wanted = filter.trim().toLowerCase();
  if (wanted === '') return frames;
  return frames.filter(
    ({ kind, text }) => kind.toLowerCase().includes(wanted) || text.toLowerCase().includes(wanted),
  );
}

/** Copies the frames as lines with tabs, which spreadsheets read. */
function CopyAll({ frames }: { readonly frames: readonly Frame[] }): VNode {
  const text = useMemo(() => frames.map(writeLine).join('\n'), [frames]);
  return html`<p>
    <${CopyButton} text=${text} subject=${`${formatCount(frames.length)} frames`} />
  </p>`;
}

function writeLine({ number, atMs, gapMs, kind, text }: Frame): string {
  return [number, atMs.toFixed(1), gapMs.toFixed(1), kind, text.replaceAll(/\s/g, ' ')].join('\t');
}
