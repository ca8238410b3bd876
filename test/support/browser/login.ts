import type { BrowserContext, Locator, Page } from 'playwright-core';

/** The console's page at a listener for operators. */
export const consoleUrl = (adminUrl: string): string => `${adminUrl}/console/`;

/** The field of the login. */
export const tokenField = (page: Page): Locator => page.getByLabel('Admin token, or read-only token');

/** The button that is there as long as an operator is logged in. */
export const logoutButton = (page: Page): Locator => page.getByRole('button', { name: 'Log out' });

/** The button that sends the token. */
export const loginButton = (page: Page): Locator => page.getByRole('button', { name: 'Log in' });

/** Opens the console and logs in. Resolves when the page shows it. */
export async function login(page: Page, adminUrl: string, token: string): Promise<void> {
  await page.goto(consoleUrl(adminUrl));
  await tokenField(page).fill(token);
  await loginButton(page).click();
  await logoutButton(page).waitFor();
}

/** Logs out in another page of the same browser. Resolves when that page asks for the token again. */
export async function logOutElsewhere(context: BrowserContext, adminUrl: string): Promise<void> {
  const other = await context.newPage();
  await other.goto(consoleUrl(adminUrl));
  await logoutButton(other).click();
  await tokenField(other).waitFor();
}
