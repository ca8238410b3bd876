/** The largest page of a list. */
export const maxPageSize = 200;
