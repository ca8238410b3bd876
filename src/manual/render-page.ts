import { posix } from 'node:path';
import { Marked, Renderer } from 'marked';
import type { Tokens } from 'marked';

/** The documentation's pages and files: their paths in the checkout, and where a browser finds them. */
export type Places = ReadonlyMap<string, string>;

/** The path of the style sheet among the pages. */
export const stylePath = 'style.css';

export const style = `:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 22%, transparent); }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 52rem; padding: 1rem 1.25rem 4rem; }
nav { border-bottom: 1px solid var(--line); display: flex; gap: 1rem; padding-bottom: .5rem; }
pre { border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: .75rem; }
code { font: .9em ui-monospace, monospace; }
.table { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
img { background: white; max-width: 100%; }
h2, h3 { margin-top: 2em; }
`;

/**
 * Renders a page of the documentation as HTML. Links to other pages lead to them; those to files that are not among the
 * pages become plain text. The console is beside the pages, as on the listener for operators. `file` is the page's path in the
 * checkout.
 */
export function renderPage(markdown: string, file: string, places: Places): string {
  const own = places.get(file) ?? '';
  const marked = new Marked({
    gfm: true,
    renderer: {
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = findTarget(href, file, own, places);
        return target === null ? text : `<a href="${escapeHtml(target)}">${text}</a>`;
      },
      image({ href, text }: Tokens.Image) {
        const target = findTarget(href, file, own, places);
        return target === null ? '' : `<img src="${escapeHtml(target)}" alt="${escapeHtml(text)}">`;
      },
      heading({ tokens, depth, text }: Tokens.Heading) {
        return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      table(token: Tokens.Table) {
        return `<div class="table">${Renderer.prototype.table.call(this, token)}</div>`;
      },
    },
  });
  const body = marked.parse(markdown, { async: false });
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? 'textgate';
  const base = relativePath(own, '');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · textgate</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${relativePath(own, stylePath)}">
</head>
<body>
<nav><a href="${base}">Documentation</a><a href="${base}../console/">Console</a></nav>
<main>
${body}</main>
</body>
</html>
`;
}

/** Where a link of a page leads in a browser; `null` when its file is not among the pages. */
function findTarget(href: string, file: string, own: string, places: Places): string | null {
  if (href.startsWith('#') || /^https?:/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const place = places.get(posix.normalize(posix.join(posix.dirname(file), path)));
  if (place === undefined) return null;
  return relativePath(own, place) + (anchor === undefined ? '' : `#${anchor}`);
}

/** The way from one page to another, which holds wherever the documentation is mounted. */
function relativePath(from: string, to: string): string {
  const way = posix.relative(posix.dirname(from), to);
  return to === '' ? `${way}${way === '' ? './' : '/'}` : way;
}

/** The anchor of a heading, as forges make it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
