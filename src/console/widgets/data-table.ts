import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import type { ComponentChildren, VNode } from 'preact';

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
}

/** A table whose columns can be sorted by their headings; without a choice rows stay in the order in which they came. */
export function DataTable<Row>({ caption, columns, rows, keyOf, empty }: Props<Row>): VNode {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const sorted = useMemo(() => sortRows(rows, columns, sorting), [rows, columns, sorting]);
  if (rows.length === 0 && empty !== undefined) return html`<div class="empty">${empty}</div>`;
  return html`
    <div class="scroll" role="region" aria-label=${caption} tabindex="0">
      <table>
        <caption class="unseen">
          ${caption}
        </caption>
        <thead>
          <tr>
            ${columns.map((column) => heading(column, sorting, setSorting))}
          </tr>
        </thead>
        <tbody>
          ${sorted.map(
            (row) =>
              html`<tr key=${keyOf(row)}>
                ${columns.map((column) => cell(column, row))}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function heading<Row>(
  column: Column<Row>,
  sorting: Sorting | null,
  setSorting: (sorting: Sorting | null) => void,
): VNode {
  const { title, sortBy, isNumber = false } = column;
  const style = isNumber ? 'number' : '';
  if (sortBy === undefined) return html`<th key=${title} scope="col" class=${style}>${title}</th>`;
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
