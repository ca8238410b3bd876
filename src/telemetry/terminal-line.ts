import { escapeControlCharacters } from '../shared/control-characters.ts';

/** The fields of a log line. */
type Line = Readonly<Record<string, string | number | null | undefined>>;

/**
 * Formats a log line for a terminal: a request in short form, anything else as its message and fields. Names may come
 * from upstreams: control sequences and line breaks in them are escaped.
 */
export function terminalLine(line: Line): string {
  const { msg, reason, upstream, count } = line;
  if (msg === 'request') return escapeControlCharacters(requestLine(line));
  const words = [msg, upstream, reason, count].filter((word) => word !== undefined && word !== null);
  return escapeControlCharacters(words.join(': '));
}

function requestLine(line: Line): string {
  const { protocol, mode, model, upstream, status, outcome, code, inputTokens, outputTokens } = line;
  const words = [
    `${protocol} ${mode} ${model ?? '-'}${upstream === null ? '' : ` via ${upstream}`}:`,
    `${status} ${outcome}${code === null ? '' : ` (${code})`}`,
    ...(inputTokens === null ? [] : [`${inputTokens}+${outputTokens} tokens`]),
    `${line['charge']} USD ${line['totalMs']} ms ${line['requestId']}`,
  ];
  return words.join(' ');
}
