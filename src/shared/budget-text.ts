/** What a text that is no budget is told. */
export const budgetForm = 'expected an amount and a period, such as 20/day, 20/week or 20/month';

/** The amount and the period of a budget in a text such as `20/month`, both unchecked; `null` for another form. */
export function splitBudget(text: string): { readonly amount: string; readonly per: string } | null {
  const [amount = '', per, ...rest] = text.split('/').map((part) => part.trim());
  return per === undefined || rest.length > 0 ? null : { amount, per };
}
