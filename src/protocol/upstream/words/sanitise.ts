import type { TextTurn } from '../../text.ts';
import { layersOf } from './escapes.ts';
import { findSecrets } from './find-secrets.ts';
import { foldMessage } from './folded-text.ts';
import { findPrompt, foldPrompt } from './hide-prompt.ts';
import type { Mark, Span } from './secret-shapes.ts';
import { findSharedRuns } from './shared-runs.ts';

/** The longest text that is returned, in characters (code points). */
const maxShownChars = 400;

/** How much of a text is looked at, in UTF-16 code units, and how much of its end is then dropped with the last word. */
const maxReadChars = 4_096;
const droppedChars = 64;

/** The shortest part of a known secret that is hidden, in letters and digits; and the shortest whole one. */
const minSecretRun = 12;
const minSecretChars = 6;

/** What an upstream's own messages must not show of it. */
export interface UpstreamSecrets {
  /** Its API key, and the values of its headers. */
  readonly keys: readonly string[];
  /** Its host name, alone and with its port. */
  readonly hosts: readonly string[];
}

/** What a text must not show, and what it may. */
interface Withheld {
  /** The conversation of the request. */
  readonly turns: readonly TextTurn[];
  /** The client's own key, as it was presented. */
  readonly clientKey: string;
  /** Read when there is a text to show, which is only after a failure. */
  readonly upstream: () => UpstreamSecrets;
  /** The names of the model, which may look like a key or an address. */
  readonly names: readonly string[];
}

/** Makes a text of an upstream fit for a log and for clients; `null` if nothing of it may be shown. */
export type Sanitise = (text: string) => string | null;

/** Hides everything: for texts of which nothing is shown. */
export const sanitiseAll: Sanitise = () => null;

/**
 * Creates the sanitiser of one request's messages: white space is collapsed, control characters are removed, and keys,
 * addresses, ids, paths and quotations of the request are replaced by marks such as `[key]`, as they are and escaped. At
 * most 400 characters are returned. The request is prepared when the first text comes, which is only after a failure.
 */
export function createSanitiser({ turns, clientKey, upstream, names }: Withheld): Sanitise {
  return (text) => {
    const prompt = foldPrompt(turns);
    const message = tidy(text);
    if (prompt === null || message === '') return null;
    const shownNames = new Set(names);
    const { keys, hosts } = upstream();
    const spans = layersOf(message).flatMap((layer) =>
      [
        ...[clientKey, ...keys].flatMap((secret) => findSecret(layer.text, secret)),
        ...hosts.flatMap((host) => findWhole(layer.text, host, '[host]')),
        ...findSecrets(layer.text, shownNames),
        ...findPrompt(layer.text, prompt),
      ].map(layer.inMessage),
    );
    return shorten(replace(message, spans));
  };
}

/** Whether a text has a known secret in it, or a long part of one. */
export function holdsSecret(text: string, secret: string): boolean {
  return findSecret(text, secret).length > 0;
}

/** One line without control characters, and not much longer than what is shown of it. */
function tidy(text: string): string {
  const part = text.slice(0, maxReadChars);
  const plain = part
    .toWellFormed()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\uFFFD]/gu, '')
    .trim();
  // The last word may be the beginning of a key, and is not recognised as one.
  return part.length === text.length
    ? plain
    : plain.slice(0, Math.max(0, plain.lastIndexOf(' ', plain.length - droppedChars)));
}

/** A secret, and its words but the first one of several: that is the scheme, such as `Bearer`. */
export function wordsOfSecret(secret: string): readonly string[] {
  return [secret, ...secret.split(/\s+/).slice(1)];
}

/** A known secret: as a whole, or a long part of it. */
function findSecret(message: string, secret: string): readonly Span[] {
  const mark: Mark = '[key]';
  const spans = wordsOfSecret(secret).flatMap((part) => findWhole(message, part, mark));
  const folded = foldMessage(message);
  for (const [start, end] of findSharedRuns(folded.units, minSecretRun, foldMessage(secret).units)) {
    const first = folded.starts[start] ?? 0;
    const behind = folded.ends[end - 1] ?? message.length;
    spans.push({ ...wordAround(message, first, behind), mark });
  }
  return spans;
}

function findWhole(message: string, secret: string, mark: Mark): Span[] {
  const spans: Span[] = [];
  if (secret.length < minSecretChars) return spans;
  for (let at = message.indexOf(secret); at !== -1; at = message.indexOf(secret, at + secret.length))
    spans.push({ start: at, end: at + secret.length, mark });
  return spans;
}

/** Extends a part to the blanks around it. */
function wordAround(message: string, from: number, to: number): { start: number; end: number } {
  const start = message.lastIndexOf(' ', from) + 1;
  const blank = message.indexOf(' ', to);
  return { start, end: blank === -1 ? message.length : blank };
}

/** Writes marks in place of spans; of spans that overlap, the first one's mark. */
function replace(message: string, spans: readonly Span[]): string {
  let shown = '';
  let at = 0;
  for (const { start, end, mark } of spans.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (start >= at) shown += message.slice(at, start) + mark;
    at = Math.max(at, end);
  }
  return shown + message.slice(at);
}

function shorten(text: string): string {
  const characters = Array.from(text);
  if (characters.length <= maxShownChars) return text;
  return `${characters.slice(0, maxShownChars - 1).join('')}…`;
}
