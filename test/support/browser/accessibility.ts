import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/**
 * Runs the rules of axe-core over a page as it is now, in the light and in the dark. Throws the rule, the elements and what
 * mends them for each violation. The rules run beside the page's scripts, whose policy is left on.
 */
export async function checkAccessibility(page: Page): Promise<void> {
  const faults: string[] = [];
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    const { violations, passes } = await runRules(page);
    if (passes.length === 0) throw new Error('no rule applied: the page is empty');
    for (const { id, help, impact, nodes } of violations)
      for (const { html, failureSummary } of nodes)
        faults.push(`${theme}: ${id} (${impact}): ${help}\n  ${html}\n  ${failureSummary}`);
  }
  await page.emulateMedia({ colorScheme: null });
  if (faults.length > 0) throw new Error(`the page is not accessible:\n${faults.join('\n')}`);
}

/** Runs the rules in a world of their own, in which the page finds nothing of them. */
async function runRules(page: Page): Promise<Pick<AxeResults, 'violations' | 'passes'>> {
  const session = await page.context().newCDPSession(page);
  try {
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
      frameId: frameTree.frame.id,
    });
    await session.send('Runtime.evaluate', { expression: source, contextId });
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      expression: `axe.run().then(({ violations, passes }) => ({ violations, passes }))`,
      contextId,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as Pick<AxeResults, 'violations' | 'passes'>;
  } finally {
    await session.detach();
  }
}
