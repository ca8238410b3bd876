import { posix } from 'node:path';
import { Marked, Renderer } from 'marked';
import type { Tokens } from 'marked';
import { anchorOf, escapeHtml, framePage, relativePath } from './page-frame.ts';

/** The documentation's pages and files: their paths in the checkout, and where a browser finds them. */
export type Places = ReadonlyMap<string, string>;

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
  return framePage({ title, place: own, body });
}

/** Where a link of a page leads in a browser; `null` when its file is not among the pages. */
function findTarget(href: string, file: string, own: string, places: Places): string | null {
  if (href.startsWith('#') || /^https?:/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const place = places.get(posix.normalize(posix.join(posix.dirname(file), path)));
  if (place === undefined) return null;
  return relativePath(own, place) + (anchor === undefined ? '' : `#${anchor}`);
}
