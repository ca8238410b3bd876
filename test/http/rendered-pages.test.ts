import { expect, test } from 'vitest';
import { renderInThread } from '../../src/manual/render-in-thread.ts';

const places = new Map([['docs/a.md', 'a']]);

test('a page is rendered once as long as its text is the same, however often it is asked for', async () => {
  const page = { markdown: '# One', file: 'docs/a.md', places };
  const first = renderInThread(page);
  expect(renderInThread({ ...page })).toBe(first);
  expect(await first).toContain('<h1 id="one">One</h1>');
  const changed = renderInThread({ ...page, markdown: '# Two' });
  expect(await changed).toContain('<h1 id="two">Two</h1>');
});

test('pages are rendered after one that could not be', async () => {
  const broken = renderInThread({ markdown: null as unknown as string, file: 'docs/broken.md', places });
  const next = renderInThread({ markdown: '# Three', file: 'docs/a.md', places });
  await expect(broken).rejects.toThrow('null');
  expect(await next).toContain('<h1 id="three">Three</h1>');
  await expect(renderInThread({ markdown: '# Four', file: 'docs/broken.md', places })).resolves.toContain(
    'Four',
  );
});
