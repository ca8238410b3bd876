/** The zone of the person who looks, as `Europe/Rome`. */
export const viewersZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const count = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const momentParts = {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const;
const moment = new Intl.DateTimeFormat('en', momentParts);
const momentWithOffset = new Intl.DateTimeFormat('en', { ...momentParts, timeZoneName: 'shortOffset' });

/** A whole number with its thousands apart, as `12,345`. */
export function formatCount(value: number): string {
  return count.format(value);
}

/** A value as `write` has it; a dash where it is not known. */
export function orDash<Value, Shown>(
  value: Value | null | undefined,
  write: (value: Value) => Shown,
): Shown | string {
  return value === null || value === undefined ? '–' : write(value);
}

const percent = new Intl.NumberFormat('en', { style: 'percent', maximumSignificantDigits: 2 });

/** A part from 0 to 1, as `42%`, with two significant digits. */
export function formatPart(part: number): string {
  return percent.format(part);
}

/** The most that a change is written with as a percentage. */
const maxChange = 10;

/** How a number has changed, as `+12%`, `−3.4%`, `×25`, or in words where there was nothing before. */
export function formatChange(now: number, before: number): string {
  if (before === 0) return now === 0 ? 'none' : 'new';
  const change = now / before - 1;
  if (change > maxChange) return `×${formatShort(now / before)}`;
  return `${change < 0 ? '−' : '+'}${percent.format(Math.abs(change))}`;
}

/** A number for little room, as `1.23M`. */
export function formatShort(value: number): string {
  return short.format(value);
}

/** An amount in USD: the gateway writes amounts exactly, and no digit of them is changed. */
export function formatAmount(usd: string): string {
  return usd.startsWith('-') ? `−$${usd.slice(1)}` : `$${usd}`;
}

/** How many significant digits a short amount has. */
const amountDigits = 4;

/** An amount in USD, rounded to four significant digits, and never by as much as a cent: `$4.964`, `$0.00001235`, `$1234.57`. */
export function shortAmount(usd: string): string {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(usd) ?? [];
  const zeros = /^0*/.exec(fraction)?.[0].length ?? 0;
  const decimals = whole === '0' ? zeros + amountDigits : Math.max(2, amountDigits - whole.length);
  if (fraction.length <= decimals) return formatAmount(usd);
  const isUp = fraction.charAt(decimals) >= '5';
  const digits = String(BigInt(whole + fraction.slice(0, decimals)) + (isUp ? 1n : 0n));
  const padded = digits.padStart(decimals + 1, '0');
  const rest = padded.slice(-decimals).replace(/0+$/, '').padEnd(2, '0');
  return formatAmount(`${sign}${padded.slice(0, -decimals)}.${rest}`);
}

const hourMs = 3_600_000;

/**
 * A time in the zone of the viewer, to the second. Within an hour of a change of its clocks with the offset, as `GMT+2`: in the
 * hour that comes twice, the same words would stand for two times.
 */
export function formatTime(iso: string): string {
  const at = new Date(iso);
  const offsetAt = (ms: number): number => new Date(at.getTime() + ms).getTimezoneOffset();
  return (offsetAt(-hourMs) === offsetAt(hourMs) ? moment : momentWithOffset).format(at);
}

const minuteMs = 60_000;

/** A time as a field of dates and times has it: in the zone of the viewer, to the second. */
export function localText(iso: string): string {
  return withOffset(iso, -1).slice(0, 19);
}

/**
 * The time that such a field has, in ISO 8601, `before` being the one that it was made for; `null` for one that is being typed.
 * Of an hour that comes twice, the pass is kept in which the time before was: the field can't tell them apart.
 */
export function readLocal(text: string, before: string): string | null {
  const read = new Date(text);
  // A year that is being typed has few digits.
  if (Number.isNaN(read.getTime()) || read.getTime() < 0) return null;
  const kept = withOffset(`${text}Z`, 1, before);
  return localText(kept).startsWith(text) ? kept : read.toISOString();
}

/** A time that is moved by the offset which the viewer's zone has at a time. */
function withOffset(iso: string, sign: 1 | -1, at = iso): string {
  return new Date(Date.parse(iso) + sign * new Date(at).getTimezoneOffset() * minuteMs).toISOString();
}

/** A length of time, as `340 ms`, `2.4 s`, `3 min 20 s` or `2 h 5 min`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A wait that is estimated, in whole seconds or minutes: estimates are off by a sixth and more. */
export function formatWait(milliseconds: number): string {
  const seconds = Math.max(1, Math.round(milliseconds / 1_000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

/** A name of the gateway's API as words: `client_closed` becomes `client closed`. */
export function asWords(name: string): string {
  return name.replaceAll('_', ' ');
}

/** How much of a name is shown: those of keys are no longer, but a provider may offer models with any. */
const nameLength = 100;

/** Characters that are not seen: they hide that a name is another one, and some turn around the words behind it. */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A name, cut if it is very long, with escapes for what is not seen. */
export function shortName(name: string): string {
  const cut = name.length > nameLength ? `${name.slice(0, nameLength - 1).toWellFormed()}…` : name;
  return cut.replaceAll(invisible, (mark) => `\\u{${mark.codePointAt(0)?.toString(16)}}`);
}

/** How much of an id is shown where there is little room. */
const idLength = 10;

/** The end of an id: ids begin with the time, so those of one moment begin alike. */
export function shortId(id: string): string {
  return id.length > idLength ? `…${id.slice(-idLength)}` : id;
}

/** Counts by name on one line, most first. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts)
    .filter(([, times]) => times > 0)
    .toSorted(([, a], [, b]) => b - a);
  if (some.length === 0) return 'none';
  return some.map(([name, times]) => `${formatCount(times)} ${asWords(name)}`).join(', ');
}
