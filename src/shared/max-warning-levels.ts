/**
 * The most warning levels of a budget: a settlement compares the sum with each. It is apart from the schema of budgets, whose
 * library would take 7 MB in every thread of the database.
 */
export const maxWarningLevels = 4;
