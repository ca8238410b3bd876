import type { PresentedStatusRow } from '../../http/present/status.ts';

/** The orders of the requests, by the names that are shown. */
export const sortNames = ['oldest first', 'by key', 'by model', 'by upstream', 'by first text'] as const;

export type SortName = (typeof sortNames)[number];

type Compare = (one: PresentedStatusRow, other: PresentedStatusRow) => number;

const byText =
  (read: (row: PresentedStatusRow) => string | null): Compare =>
  (one, other) =>
    (read(one) ?? '').localeCompare(read(other) ?? '');

const orders: Readonly<Record<SortName, Compare>> = {
  // As the gateway lists them.
  'oldest first': () => 0,
  'by key': byText(nameOfKey),
  'by model': byText(({ model }) => model),
  'by upstream': byText(({ upstream }) => upstream),
  // Those without text first, then the slowest ones.
  'by first text': (one, other) => (other.first_text_ms ?? Infinity) - (one.first_text_ms ?? Infinity) || 0,
};

/** A key's name, or its id where the name is not known. */
export function nameOfKey({ key_name: name, key_id: id }: PresentedStatusRow): string {
  return name ?? id ?? '-';
}

/** Those of the requests in which a text occurs, in an order. Equal ones stay in the order of their arrival. */
export function selectRows(
  rows: readonly PresentedStatusRow[],
  filter: string,
  sort: SortName,
): readonly PresentedStatusRow[] {
  const wanted = filter.toLowerCase();
  const found =
    wanted === '' ? rows : rows.filter((row) => textsOf(row).some((text) => text.includes(wanted)));
  return found.toSorted(orders[sort]);
}

function textsOf(row: PresentedStatusRow): readonly string[] {
  const { request_id: id, key_id: keyId, protocol, mode, model, upstream, node, waits_for: waits } = row;
  const waitsAt = row.waits_at ?? [];
  return [id, nameOfKey(row), keyId, protocol, mode, model, upstream, node, waits, ...waitsAt].map((text) =>
    (text ?? '').toLowerCase(),
  );
}
