import { html } from 'htm/preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { VNode } from 'preact';
import uPlot from 'uplot';
import { formatShort } from './format.ts';

/** One line or area of a chart. */
export interface Series {
  readonly name: string;
  /** A value for each time; `null` where there is none. */
  readonly values: readonly (number | null)[];
}

interface Props {
  /** What the chart shows, for screen readers: its name, and what can be read from it. */
  readonly label: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** Whether values are added up above one another, in the order of the series. */
  readonly isStacked?: boolean;
  /** Whether times are written in UTC, and not in the zone of the viewer. */
  readonly isUtc?: boolean;
  /** Writes a value of the axis and of the legend. */
  readonly write?: (value: number) => string;
  /** The least that the axis of the values shows: one request would fill the chart. */
  readonly least?: number;
  /** When something happened, in seconds since 1970: a line in the chart. What it was is told elsewhere. */
  readonly marks?: readonly number[];
  /** Called with the time that a person drags over, in seconds since 1970. */
  readonly onZoom?: (from: number, to: number) => void;
}

const noMarks: readonly number[] = [];

/** The least width of a drag, in pixels: a click is none. */
const leastDrag = 5;

const height = 220;

/** How many series have a colour of their own; `--series-1` and following of the style. */
export const maxSeries = 8;

/** A chart over time, in the colours of the page, as wide as its place. */
export function Chart({
  label,
  times,
  series,
  isStacked = false,
  isUtc = false,
  write = formatShort,
  least = 0,
  marks = noMarks,
  onZoom,
}: Props): VNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = JSON.stringify([series.map(({ name }) => name), isStacked, isUtc, write(1), least]);
  const data = toData(times, series, isStacked);
  const latest = useRef(data);
  latest.current = data;
  const current = useRef({ marks, onZoom });
  current.current = { marks, onZoom };
  // Before the next frame, which would have an empty chart.
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(
        options(element, series, { isStacked, isUtc, write, least }, () => current.current),
        latest.current,
        element,
      );
    };
    draw();
    const sizes = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(element.clientWidth, 1), height }),
    );
    sizes.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => {
      sizes.disconnect();
      dark.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useLayoutEffect(() => plot.current?.setData(data), [times, series, marks]);
  return html`
    <figure class="chart">
      <div ref=${place} role="img" aria-label=${label}></div>
      <figcaption>
        <ul class="legend">
          ${series.map(
            ({ name }, index) =>
              html`<li key=${name}>
                <span class="swatch" style=${{ background: `var(--series-${index + 1})` }}></span>${name}
              </li>`,
          )}
        </ul>
      </figcaption>
    </figure>
  `;
}

/** The values as the library takes them; stacked ones are sums, the last series at the bottom. */
function toData(times: readonly number[], series: readonly Series[], isStacked: boolean): uPlot.AlignedData {
  if (!isStacked) return [[...times], ...series.map(({ values }) => [...values])];
  const sums = times.map(() => 0);
  const stacked = series.toReversed().map(({ values }) =>
    times.map((_time, index) => {
      sums[index] = (sums[index] ?? 0) + (values[index] ?? 0);
      return sums[index];
    }),
  );
  return [[...times], ...stacked.toReversed()];
}

function options(
  element: HTMLElement,
  series: readonly Series[],
  { isStacked, isUtc, write, least }: Required<Pick<Props, 'isStacked' | 'isUtc' | 'write' | 'least'>>,
  current: () => { readonly marks: readonly number[]; readonly onZoom: Props['onZoom'] },
): uPlot.Options {
  const colour = (name: string): string => readColour(element, name);
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font: `12px ${getComputedStyle(element).fontFamily}`,
  };
  return {
    width: Math.max(element.clientWidth, 1),
    height,
    ...(isUtc ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC') } : {}),
    legend: { show: false },
    cursor: {
      show: current().onZoom !== undefined,
      points: { show: false },
      drag: { setScale: false },
    },
    hooks: {
      draw: [(plot) => drawMarks(plot, current().marks, colour('--muted'))],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < leastDrag) return;
          plot.setSelect({ ...plot.select, width: 0 }, false);
          current().onZoom?.(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
        },
      ],
    },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(most * 1.05, least) || 1] } },
    axes: [
      { ...axis, values: timeFormats },
      { ...axis, size: 76, values: (_plot, values) => values.map((value) => write(value)) },
    ],
    series: [
      {},
      ...series.map(({ name }, index) => {
        const stroke = colour(`--series-${index + 1}`);
        return {
          label: name,
          stroke,
          width: isStacked ? 0 : 2,
          ...(isStacked
            ? { fill: stroke, paths: barPaths(), points: { show: false } }
            : { points: { filter: lonely } }),
        };
      }),
    ],
  };
}

/** The values of a line that have none beside them: it has no length there, so they are drawn as points. */
function lonely(plot: uPlot, index: number, isShown: boolean): number[] | null {
  // In a wide chart the library draws all values as points.
  if (isShown) return null;
  const values = plot.data[index] ?? [];
  const isMissing = (place: number): boolean => (values[place] ?? null) === null;
  return [...values.keys()].filter(
    (place) => !isMissing(place) && isMissing(place - 1) && isMissing(place + 1),
  );
}

/** Draws a dashed line at each mark. */
function drawMarks(plot: uPlot, marks: readonly number[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([4, 4]);
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/**
 * The times of the axis by their distance in seconds, in 24 hours and with the month's name, as all times of the pages:
 * distance, format, and what is written below it where the year, the day or the minute begins.
 */
const timeFormats: uPlot.Axis.Values = [
  [86_400 * 28, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{MMM} {D}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{MMM} {D}', null, '\n{MMM} {D}', null, null, null, 1],
  [1, ':{ss}', '\n{MMM} {D} {HH}:{mm}', null, '\n{MMM} {D} {HH}:{mm}', null, '\n{HH}:{mm}', null, 1],
  [
    0.001,
    ':{ss}.{fff}',
    '\n{MMM} {D} {HH}:{mm}',
    null,
    '\n{MMM} {D} {HH}:{mm}',
    null,
    '\n{HH}:{mm}',
    null,
    1,
  ],
];

/** A colour of the style in the theme that is shown: a canvas knows neither variables nor themes. */
function readColour(element: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Bars that fill most of their time. */
function barPaths(): uPlot.Series.PathBuilder {
  const build = uPlot.paths.bars?.({ size: [0.8, 60], align: 1 });
  if (build === undefined) throw new Error('the chart library has no bars');
  return build;
}
