/**
 * The mark of a low balance that is in force for a key, given as an expression; `NULL` where no webhook wants to know. Steps of
 * the schema have this text.
 */
export function markOf(keyId: string): string {
  return `(SELECT CASE WHEN event_settings.low_balance IS NULL THEN NULL
    ELSE coalesce(api_keys.low_balance, event_settings.low_balance) END
    FROM api_keys JOIN event_settings ON event_settings.id = 1 WHERE api_keys.id = ${keyId})`;
}
