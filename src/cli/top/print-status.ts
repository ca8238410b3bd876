import { styleText } from 'node:util';
import type { PresentedStatus } from '../../http/present/status.ts';
import { cell } from '../../telemetry/log/terminal-text.ts';
import { count } from '../../shared/count.ts';
import { writeMs, maxColumns } from '../output.ts';
import { callAdmin } from '../admin-client.ts';
import { writeRows } from './rows.ts';

/** Colours a text, where colours are shown. */
export type Paint = (style: Extract<Parameters<typeof styleText>[0], string>, text: string) => string;

const stateStyles = { ready: 'green', 'not ready': 'red', draining: 'yellow' } as const;

type UpstreamState = PresentedStatus['upstreams'][string]['state'];

/** The colours of the states, which are ranked: where there is no room for all upstreams, the last ones are left out. */
const upstreamStyles: Readonly<Record<UpstreamState, 'green' | 'red' | 'yellow' | 'dim'>> = {
  failing: 'red',
  probing: 'yellow',
  'paused by the provider': 'yellow',
  ok: 'green',
  unknown: 'dim',
};

const rankedStates = Object.keys(upstreamStyles);

const number = new Intl.NumberFormat('en');

/** What is said of the gateway as a whole, above the upstreams. Each line is `width` wide. */
export function writeSummary(status: PresentedStatus, width: number, paint: Paint): readonly string[] {
  const { version, node, state, reason, in_flight: inFlight, recent, ledger } = status;
  const where = node === null ? '' : ` on ${node}`;
  const others = inFlight.all_nodes ? '' : ' (other nodes could not be asked)';
  const first = `textgate ${version}${where}: `;
  const because = reason === null || reason === state ? '' : `: ${reason}`;
  const progress = `${number.format(inFlight.running)} running, ${number.format(inFlight.waiting)} waiting${others}`;
  const stateText = `${state}${because}`;
  const firstLine = cell(`${first}${stateText}`, width);
  return [
    firstLine.replace(stateText, () => paint(stateStyles[state], stateText)),
    cell(progress, width),
    cell(writeRecent(recent), width),
    cell(`endings: ${writeEndings(recent.endings)}`, width),
    ...writeLedger(ledger).map((line) => paint('red', cell(line, width))),
  ];
}

function writeRecent(recent: PresentedStatus['recent']): string {
  const { p50, p99 } = recent.first_text_ms;
  const firstText = p50 === null || p99 === null ? '' : `, first text ${writeMs(p50)}, p99 ${writeMs(p99)}`;
  return `last ${recent.seconds} s: ${count(recent.requests, 'request')} (${recent.per_second}/s), ${number.format(recent.output_tokens)} tokens out${firstText}`;
}

function writeEndings(endings: PresentedStatus['recent']['endings']): string {
  const all = Object.entries(endings).toSorted(([, one], [, other]) => other - one);
  return all.length === 0 ? 'none' : all.map(([name, times]) => `${name} ${number.format(times)}`).join(', ');
}

/** Only what is wrong with the books: otherwise there is nothing to do. */
function writeLedger({ imbalance, settlement_lag_ms: lagMs }: PresentedStatus['ledger']): readonly string[] {
  return [
    ...(imbalance === null || imbalance === '0.00' ? [] : [`ledger: imbalance of ${imbalance} USD`]),
    ...(lagMs === 0 ? [] : [`ledger: a settlement has waited for the database for ${writeMs(lagMs)}`]),
  ];
}

/** One line for each upstream, at most so many; those that fail come first. */
export function writeUpstreams(
  upstreams: PresentedStatus['upstreams'],
  most: number,
  width: number,
  paint: Paint,
): readonly string[] {
  const all = Object.entries(upstreams).toSorted(
    ([, one], [, other]) => rankedStates.indexOf(one.state) - rankedStates.indexOf(other.state),
  );
  const shown = all.length > most ? all.slice(0, Math.max(0, most - 1)) : all;
  const rest = all.length - shown.length;
  const nameWidth = Math.min(Math.floor(width / 3), Math.max(0, ...all.map(([name]) => name.length)));
  const lines = shown.map(([name, { state, running, waiting, cause, models = {} }]) => {
    const named = Object.entries(models).map(([model, report]) => `, ${model} ${report.state}`);
    const because = `${named.join('')}${cause === undefined ? '' : `: ${cause}`}`;
    const use = `${running} running${waiting === 0 ? '' : `, ${waiting} waiting`}`;
    const text = cell(`upstream ${cell(name, nameWidth)}  ${state}, ${use}${because}`, width);
    return text.replace(`  ${state},`, () => `  ${paint(upstreamStyles[state], state)},`);
  });
  return rest === 0 ? lines : [...lines, cell(`and ${count(rest, 'more upstream')}`, width)];
}

/** How many requests in progress are read: more than a terminal has lines, so that filters and orders have a choice. */
export const readRows = 500;

/** Colours for standard output: none where it is no terminal, or `NO_COLOR` is set. */
export const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });

/** The status of the gateway as text, or as JSON. */
export async function printStatus({ json }: { readonly json?: true }): Promise<string> {
  const status = await callAdmin<PresentedStatus>('GET', `/admin/status?limit=${readRows}`);
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
