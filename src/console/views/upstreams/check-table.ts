import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { formatDuration } from '../../widgets/format.ts';
import type { Check } from './run-doctor.ts';

const moods = { ok: 'good', warning: 'warning', fault: 'bad', skipped: 'plain' } as const;

const columns: readonly Column<Check>[] = [
  { title: 'Check', isName: true, cell: ({ id }) => html`<code>${id}</code>` },
  {
    title: 'Result',
    cell: ({ status }) => html`<span class=${`badge ${moods[status]}`}>${status}</span>`,
  },
  { title: 'Found', isText: true, cell: ({ detail }) => detail },
  {
    title: 'What to do',
    isText: true,
    cell: ({ advice, status }) => advice ?? (status === 'fault' ? 'see the next check' : '–'),
  },
  { title: 'Took', isNumber: true, cell: ({ ms }) => (ms === null ? '–' : formatDuration(ms)) },
];

/** The checks of an upstream, in the order in which they were made. */
export function CheckTable({ checks }: { readonly checks: readonly Check[] }): VNode {
  return html`<${DataTable}
    caption="Checks"
    columns=${columns}
    rows=${checks}
    keyOf=${({ id }: Check) => id}
  />`;
}
