import { html } from 'htm/preact';
import { useMemo } from 'preact/hooks';
import type { VNode } from 'preact';
import type { PresentedRecord } from '../../../http/present/record.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { formatCount, shortName } from '../../widgets/format.ts';

/** A part of a request's time, in milliseconds after its arrival. */
interface Span {
  readonly name: string;
  /** `null` where a record does not say it. */
  readonly from: number | null;
  readonly to: number | null;
  readonly kind: 'waiting' | 'attempt' | 'text';
}

/** The width of the whole time in the bars. */
const width = 1_000;

/** The least that a bar has of it, so that a short time can be seen. */
const leastWidth = 4;

/** Where a request's time went: the same in numbers and in bars below one another. */
export function Timings({ record }: { readonly record: PresentedRecord }): VNode {
  const spans = useMemo(() => spansOf(record), [record]);
  const whole = Math.max(1, ...spans.flatMap(({ from, to }) => [from ?? 0, to ?? 0]));
  const columns: readonly Column<Span>[] = [
    { title: 'Part', isName: true, cell: ({ name }) => name },
    { title: 'From', isNumber: true, cell: ({ from }) => writeMs(from) },
    { title: 'To', isNumber: true, cell: ({ to }) => writeMs(to) },
    {
      title: 'For',
      isNumber: true,
      cell: ({ from, to }) => writeMs(from === null || to === null ? null : to - from),
    },
    { title: `0 to ${writeMs(whole)}`, cell: (span) => bar(span, whole) },
  ];
  return html`<${DataTable}
    caption="Parts of the request's time"
    columns=${columns}
    rows=${spans}
    keyOf=${({ name }: Span) => name}
  />`;
}

function spansOf({ timings, attempts }: PresentedRecord): readonly Span[] {
  const { queued_ms: queued, first_byte_ms: firstText, total_ms: total } = timings;
  return [
    { name: 'queued', from: 0, to: queued, kind: 'waiting' },
    ...attempts.map(({ upstream, started_ms: from, duration_ms: duration }, index) => {
      const to = from === null ? null : from + duration;
      return { name: `attempt ${index + 1}: ${shortName(upstream)}`, from, to, kind: 'attempt' as const };
    }),
    ...(firstText === null
      ? []
      : [{ name: 'first text to the end', from: firstText, to: total, kind: 'text' as const }]),
  ];
}

/** The numbers beside it say the same. Its places are attributes: the page's policy has no styles in elements. */
function bar({ from, to, kind }: Span, whole: number): VNode | null {
  if (from === null || to === null) return null;
  const length = Math.max(((to - from) / whole) * width, leastWidth);
  const start = Math.min((from / whole) * width, width - leastWidth);
  return html`
    <svg class="span" viewBox=${`0 0 ${width} 10`} preserveAspectRatio="none" aria-hidden="true">
      <rect class=${kind} x=${start} width=${Math.min(length, width - start)} height="10" />
    </svg>
  `;
}

function writeMs(milliseconds: number | null): string {
  return milliseconds === null ? '–' : `${formatCount(milliseconds)} ms`;
}
