const day = new Intl.DateTimeFormat('en', {
  weekday: 'short',
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  timeZone: 'UTC',
});

/** A day such as `2030-01-31`, with its name. */
export function formatDay(text: string): string {
  return day.format(Date.parse(text));
}
