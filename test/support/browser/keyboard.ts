import type { Locator, Page } from 'playwright-core';

/** How many steps any element of a page may be away. */
const maxSteps = 100;

/** What is used of an element in the page; tests have no types of the DOM. */
interface PageElement {
  matches(selector: string): boolean;
  readonly ownerDocument: { readonly defaultView: { getComputedStyle(of: PageElement): Styles } };
}

interface Styles {
  readonly outlineStyle: string;
  readonly boxShadow: string;
}

/** Goes to an element with the Tab key alone, and throws if it can't be reached or does not show that it has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let step = 0; step < maxSteps; step++) {
    if (await isFocused(target)) return await expectVisibleFocus(target);
    await page.keyboard.press('Tab');
  }
  throw new Error(`the Tab key does not reach ${String(target)}`);
}

/** Whether an element has the focus. */
export function isFocused(target: Locator): Promise<boolean> {
  return target.evaluate((element: PageElement) => element.matches(':focus'));
}

async function expectVisibleFocus(target: Locator): Promise<void> {
  const { outlineStyle, boxShadow } = await target.evaluate((element: PageElement) => {
    const styles = element.ownerDocument.defaultView.getComputedStyle(element);
    return { outlineStyle: styles.outlineStyle, boxShadow: styles.boxShadow };
  });
  if (outlineStyle === 'none' && boxShadow === 'none')
    throw new Error(`${String(target)} does not show that it has the focus`);
}
