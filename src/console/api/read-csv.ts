import { adminPath, refusalOf } from './admin-api.ts';

/** Reads a list of the admin API as CSV, page by page up to a bound. `isWhole`: the bound was not reached. */
export async function readCsv(
  route: string,
  parameters: Readonly<Record<string, string | null>>,
  maxPages: number,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const pages: string[] = [];
  let after: string | null = null;
  do {
    const response: Response = await fetch(adminPath(route, { ...parameters, after }), {
      headers: { accept: 'text/csv' },
    });
    if (!response.ok) throw await refusalOf(response);
    const page = await response.text();
    // Every page has the line with the names of the columns.
    pages.push(pages.length === 0 ? page : page.slice(page.indexOf('\n') + 1));
    after = response.headers.get('x-textgate-next');
  } while (after !== null && pages.length < maxPages);
  return { text: pages.join(''), isWhole: after === null };
}
