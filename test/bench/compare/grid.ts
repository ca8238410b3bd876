import { plainFigure } from './scenario.ts';
import type { Figure } from './scenario.ts';

/** The figures of a scenario that has a table of its own: each row has every column. */
export interface Grid {
  readonly scenario: string;
  readonly rows: readonly { readonly name: string; readonly title: string }[];
  readonly columns: readonly Figure[];
}

/** The name of the figure of a row and a column. */
export function nameInGrid(row: { readonly name: string }, column: Pick<Figure, 'name'>): string {
  return `${row.name}.${column.name}`;
}

/** All figures of a grid. */
export function gridFigures({ rows, columns }: Grid): readonly Figure[] {
  return rows.flatMap((row) =>
    columns.map((column) => ({
      ...plainFigure(nameInGrid(row, column), `${row.title}: ${column.title}`, column.unit, column.digits),
    })),
  );
}

/** What was found for a row, as figures by their names. */
export function namedInGrid(
  row: { readonly name: string },
  found: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [nameInGrid(row, { name }), value]));
}
