import type { Page } from 'playwright-core';

/**
 * Looks for what a page does not show well, in its own words: a page that scrolls sideways; texts and fields that reach out of
 * the window and are not in what scrolls by itself; those that are cut off by their place; those that lie above one another;
 * tables that are far wider than any window, and charts that are not as wide as their place.
 */
const look = `(async () => {
  // A chart is drawn anew in the frame behind the one that has its new size.
  for (let frame = 0; frame < 2; frame++) await new Promise((drawn) => requestAnimationFrame(drawn));
  const faults = [];
  // A header that stays at the top lies above what is scrolled below it.
  scrollTo(0, 0);
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.push('the page is ' + scrollWidth + ' wide');
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('.unseen');
  const nameOf = (element) => element.localName + '.' + element.className + ' "' + element.textContent.trim().slice(0, 40) + '"';
  const scrollers = '.scroll, pre, .output, dialog, textarea';
  const boxes = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
    if (text.data.trim() === '' || !isSeen(text.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) boxes.push({ element: text.parentElement, around: text.parentElement, box });
  }
  for (const element of document.querySelectorAll('input, select, textarea, meter, svg, canvas'))
    if (isSeen(element)) boxes.push({ element, around: element.parentElement, box: element.getBoundingClientRect() });
  for (const { element, box } of boxes) {
    const scrolling = element.closest(scrollers);
    if (scrolling === null && (box.left < -1 || box.right > clientWidth + 1)) faults.push('out of the window: ' + nameOf(element));
    for (let place = element; place !== null && place !== scrolling; place = place.parentElement) {
      const { left, right, top, bottom } = place.getBoundingClientRect();
      const { overflowX, textOverflow } = getComputedStyle(place);
      if (overflowX === 'visible' || textOverflow === 'ellipsis' || place === document.body || place === document.documentElement) continue;
      if (box.left < left - 1 || box.right > right + 1 || box.top < top - 1 || box.bottom > bottom + 1)
        faults.push('cut off: ' + nameOf(element));
    }
  }
  const [slack, widestTable] = [3, 2600];
  // What is scrolled away lies above nothing.
  const shown = boxes.flatMap(({ element, around, box }) => {
    const place = around.closest(scrollers + ', td, th')?.getBoundingClientRect() ?? box;
    const [left, right] = [Math.max(box.left, place.left), Math.min(box.right, place.right)];
    const [top, bottom] = [Math.max(box.top, place.top), Math.min(box.bottom, place.bottom)];
    return right > left && bottom > top ? [{ element, box: { left, right, top, bottom } }] : [];
  });
  for (const [index, one] of shown.entries())
    for (let behind = index + 1; behind < shown.length; behind++) {
      const other = shown[behind];
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      if (width > slack && height > slack) faults.push('above one another: ' + nameOf(one.element) + ' and ' + nameOf(other.element));
    }
  for (const place of document.querySelectorAll('.chart > div')) {
    const canvas = place.querySelector('canvas');
    const drawn = canvas.getBoundingClientRect().width;
    if (Math.abs(drawn - place.clientWidth) > 1) faults.push('a chart is ' + drawn + ' wide in ' + place.clientWidth);
  }
  for (const place of document.querySelectorAll('.scroll'))
    if (place.scrollWidth > widestTable) faults.push('a table is ' + place.scrollWidth + ' wide');
  return [...new Set(faults)];
})()`;

/** What a page does not show well at the size that it has, a line for each. */
export async function layoutFaults(page: Page): Promise<readonly string[]> {
  return (await page.evaluate(look)) as readonly string[];
}

/** Looks for charts that have nothing in the colour of their first series. */
const lookAtCharts = `[...document.querySelectorAll('.chart')].filter((chart) => {
  // A copy is read: the browser warns of a canvas that is drawn on and read again and again.
  const canvas = chart.querySelector('canvas');
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const swatch = getComputedStyle(chart.querySelector('.swatch')).backgroundColor;
  const [red, green, blue] = swatch.match(/\\d+/g).map(Number);
  return !pixels.includes((255 << 24 | blue << 16 | green << 8 | red) >>> 0);
}).length`;

/** How many charts of a page show nothing of their first series. */
export async function countEmptyCharts(page: Page): Promise<number> {
  return (await page.evaluate(lookAtCharts)) as number;
}
