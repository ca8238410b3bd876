import { posix } from 'node:path';
import { stylePath } from './style.ts';

/** Where the search of the documentation is, below its own path. */
export const searchPath = 'search';

/** What a page shows. */
interface Framed {
  readonly title: string;
  /** Its place below the documentation. */
  readonly place: string;
  /** HTML. */
  readonly body: string;
  /** What was searched, if it is the page of a search. */
  readonly searched?: string;
}

/** A page as HTML: its body, with the way to the index, the console and the search above it. */
export function framePage({ title, place, body, searched = '' }: Framed): string {
  const base = relativePath(place, '');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · textgate</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${relativePath(place, stylePath)}">
</head>
<body>
<nav><a href="${base}">Documentation</a><a href="${base}../console/">Console</a>
<form role="search" action="${relativePath(place, searchPath)}"><input type="search" name="q" aria-label="Search the documentation" placeholder="Search" value="${escapeHtml(searched)}"></form></nav>
<main>
${body}</main>
</body>
</html>
`;
}

/** The way from one page to another, which holds wherever the documentation is mounted. */
export function relativePath(from: string, to: string): string {
  const way = posix.relative(posix.dirname(from), to);
  return to === '' ? `${way}${way === '' ? './' : '/'}` : way;
}

/** The anchor of a heading, as forges make it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
