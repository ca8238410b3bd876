import { styleText } from 'node:util';
import type { PresentedStatus } from '../../http/present/status.ts';
import { count } from '../../shared/count.ts';
import { callAdmin } from '../admin-client.ts';
import { maxColumns } from '../output.ts';
import { writeSummary, writeUpstreams } from './head-lines.ts';
import type { Paint } from './head-lines.ts';
import { writeRows } from './table.ts';

/** How many requests in progress are read: more than a terminal has lines, so that filters and orders have a choice. */
export const readRows = 500;

/** Colours for standard output: none where it is no terminal, or `NO_COLOR` is set. */
export const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });

/** The status of the gateway as text, or as JSON. */
export async function printStatus({ json }: { readonly json?: true }): Promise<string> {
  const status = (await callAdmin('GET', `/admin/status?limit=${readRows}`)) as PresentedStatus;
  if (json) return JSON.stringify(status);
  // Absent without a terminal, and 0 at one that does not say its size: nothing but dots would fit that.
  const width = process.stdout.columns || maxColumns;
  const { data, running, waiting, has_more: hasMore } = status.in_flight;
  const { head, lines } = writeRows(data, Date.parse(status.at), width);
  return [
    ...writeSummary(status, width, paint),
    ...writeUpstreams(status.upstreams, Infinity, width, paint),
    ...(data.length === 0 ? [] : ['', paint('bold', head), ...lines]),
    ...(hasMore ? [`and ${count(running + waiting - data.length, 'more request')}`] : []),
  ]
    .map((line) => line.trimEnd())
    .join('\n');
}
