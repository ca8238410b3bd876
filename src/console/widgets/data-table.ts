import { html } from 'htm/preact';
import { useMemo, useState, useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ComponentChildren, RefObject, VNode } from 'preact';
import { amountOf } from './amount.ts';
import { formatCount, orDash } from './format.ts';
import { shownName } from './name.ts';

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** What rows are sorted by; a column without it does not sort. `null` comes last. */
  readonly sortBy?: (row: Row) => string | number | null;
  readonly isNumber?: boolean;
  /** Whether the cells hold sentences, which take several lines. */
  readonly isText?: boolean;
  /** Whether the column's cell names the row, for screen readers. */
  readonly isName?: boolean;
}

/** A column of texts, which is sorted by what it shows. */
export function textColumn<Row>(title: string, read: (row: Row) => string | null): Column<Row> {
  return { title, sortBy: read, cell: (row) => orDash(read(row), shownName) };
}

/** A column of numbers. */
export function numberColumn<Row>(
  title: string,
  read: (row: Row) => number | null,
  write: (value: number) => string = formatCount,
): Column<Row> {
  return { title, isNumber: true, sortBy: read, cell: (row) => orDash(read(row), write) };
}

/** A column of amounts in USD, which are sorted by their nearest numbers. */
export function amountColumn<Row>(title: string, read: (row: Row) => string | null): Column<Row> {
  const sortBy = (row: Row): number | null => {
    const amount = read(row);
    return amount === null ? null : Number(amount);
  };
  return { title, isNumber: true, sortBy, cell: (row) => orDash(read(row), amountOf) };
}

interface Sorting {
  readonly title: string;
  readonly isDescending: boolean;
}

interface Props<Row> {
  /** What the table shows, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Shown instead of the table without rows: what to do next. */
  readonly empty?: ComponentChildren;
  /** For a table that may be long. */
  readonly paging?: Paging;
}

interface Paging {
  /** How many rows are shown at first, and how many more at each wish. */
  readonly first: number;
  readonly more: number;
  /** What the rows are, as `keys`. */
  readonly plural: string;
}

/**
 * A table whose columns can be sorted by their headings; without a choice rows stay in the order in which they came. Only rows
 * that are all shown can be sorted: the largest of some would be taken for the largest of all.
 */
export function DataTable<Row>({ caption, columns, rows, keyOf, empty, paging }: Props<Row>): VNode {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [limit, setLimit] = useState(paging?.first ?? Infinity);
  const isWhole = rows.length <= limit;
  const shown = useMemo(
    () => (isWhole ? sortRows(rows, columns, sorting) : rows.slice(0, limit)),
    [rows, columns, sorting, limit],
  );
  const place = useKeptFocus();
  if (rows.length === 0 && empty !== undefined)
    return html`<div class="empty" ref=${place} tabindex="-1">${empty}</div>`;
  return html`
    <div class="scroll" ref=${place} role="region" aria-label=${caption} tabindex="0">
      <table>
        <caption class="unseen">
          ${caption}
        </caption>
        <thead>
          <tr>
            ${columns.map((column) => heading(column, isWhole, sorting, setSorting))}
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            (row) =>
              html`<tr key=${keyOf(row)}>
                ${columns.map((column) => cell(column, row))}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${
      paging !== undefined &&
      html`<${ShowMore}
        shown=${shown.length}
        total=${rows.length}
        plural=${paging.plural}
        onMore=${() => setLimit(limit + paging.more)}
      />`
    }
  `;
}

/** A place that gets the focus when it was in a row that is gone: the next key would begin at the page's top otherwise. */
function useKeptFocus(): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  const hadFocus = place.current?.contains(document.activeElement) === true;
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) place.current?.focus();
  });
  return place;
}

function heading<Row>(
  column: Column<Row>,
  isWhole: boolean,
  sorting: Sorting | null,
  setSorting: (sorting: Sorting | null) => void,
): VNode {
  const { title, sortBy, isNumber = false } = column;
  const style = isNumber ? 'number' : '';
  if (sortBy === undefined || !isWhole)
    return html`<th key=${title} scope="col" class=${style}>${title}</th>`;
  const own = sorting?.title === title ? sorting : null;
  const direction = own === null ? 'none' : own.isDescending ? 'descending' : 'ascending';
  return html`
    <th key=${title} scope="col" class=${style} aria-sort=${direction}>
      <button type="button" class="sort" onClick=${() => setSorting(nextSorting(column, own))}>
        ${title}<span aria-hidden="true">${{ none: '', ascending: ' ↑', descending: ' ↓' }[direction]}</span>
      </button>
    </th>
  `;
}

/** Numbers are wanted largest first, texts by the alphabet; the third time the order of arrival comes back. */
function nextSorting<Row>({ title, isNumber = false }: Column<Row>, own: Sorting | null): Sorting | null {
  if (own === null) return { title, isDescending: isNumber };
  return own.isDescending === isNumber ? { title, isDescending: !isNumber } : null;
}

function cell<Row>(
  { title, cell: write, isNumber = false, isText = false, isName = false }: Column<Row>,
  row: Row,
): VNode {
  const style = isNumber ? 'number' : isText ? 'wide' : '';
  return isName
    ? html`<th key=${title} scope="row">${write(row)}</th>`
    : html`<td key=${title} class=${style}>${write(row)}</td>`;
}

function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sorting: Sorting | null,
): readonly Row[] {
  const sortBy = columns.find(({ title }) => title === sorting?.title)?.sortBy;
  if (sorting === null || sortBy === undefined) return rows;
  const sign = sorting.isDescending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [a, b] = [sortBy(one), sortBy(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
    return sign * String(a).localeCompare(String(b), 'en', { numeric: true });
  });
}

interface MoreProps {
  /** How many rows are drawn, and how many there are. */
  readonly shown: number;
  readonly total: number;
  /** What the rows are, as `keys`. */
  readonly plural: string;
  readonly onMore: () => void;
}

/**
 * Says that a table is drawn in part only, with a button for more of it; nothing for one that is whole from the beginning.
 * The button goes away with the last rows: without the focus on what it leaves, the next key would begin at the page's top.
 */
export function ShowMore({ shown, total, plural, onMore }: MoreProps): VNode | null {
  const [isPressed, setIsPressed] = useState(false);
  const note = useRef<HTMLParagraphElement>(null);
  const isWhole = shown >= total;
  useEffect(() => {
    if (isWhole && document.activeElement === document.body) note.current?.focus();
  }, [isWhole]);
  if (isWhole && !isPressed) return null;
  const press = (): void => {
    setIsPressed(true);
    onMore();
  };
  return html`
    <p class="note" ref=${note} tabindex="-1">
      <span role="status">${formatCount(shown)} of ${formatCount(total)} ${plural} are shown.</span>${' '}
      ${!isWhole && html`<button type="button" class="small" onClick=${press}>Show more</button>`}
    </p>
  `;
}
