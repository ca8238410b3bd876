import type { Manual, ManualFile } from '../../domain/ports/manual.ts';
import { readingAlone } from '../fallback-handlers.ts';
import { sendBody, sendRedirect } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Response, Router } from '../router.ts';

/** Nothing but the documentation's own style and pictures is loaded, its search asks itself, and no page shows it in a frame. */
const pagePolicy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** The routes of the documentation, as pages for a browser. They need no token: nothing of this gateway is in them. */
export function createManualRoutes(manual: Manual): Router {
  const router = createRouter({ strict: true });
  // Relative links lead nowhere without the slash.
  router.get('/docs', (_request, response) => sendRedirect(response, 308, 'docs/'));
  router.get('/docs/search', async (request, response) => {
    const text = new URLSearchParams(request.url.split('?', 2)[1]).get('q') ?? '';
    sendPage(response, await manual.search(text));
  });
  router.get(['/docs/', '/docs/*path'], async (request, response, next) => {
    const parts: unknown = request.params['path'] ?? [];
    const path = Array.isArray(parts) ? parts.join('/') : String(parts);
    const found = await manual.find(path);
    if (found === null) {
      const [place, location] = canonical(path);
      const moved = manual.movedTo(place);
      if (moved !== null)
        return sendRedirect(response, 308, '../'.repeat(path.split('/').length - 1) + moved);
      if (place === path || (await manual.find(place)) === null) return next();
      return sendRedirect(response, 308, location);
    }
    sendPage(response, found);
  });
  router.all(['/docs/', '/docs/*path'], readingAlone);
  return router;
}

function sendPage(response: Response, { type, body }: ManualFile): void {
  sendBody(response, 200, body, { 'content-type': type, 'content-security-policy': pagePolicy });
}

/** The place of the page that is meant by the name of its file, or by a slash at its end, and the way there. */
function canonical(path: string): readonly [place: string, location: string] {
  const place = path.replace(/(?<=[^/])(\.md|\.html|\/)$/, '').replace(/^(README|index)$/, '');
  const name = place.slice(place.lastIndexOf('/') + 1);
  return [place, path.endsWith('/') ? `../${name}` : name || './'];
}
