/**
 * Creates SQLite's function `json_patch` for texts of flat objects, which statements of all engines call: the values of a
 * patch replace those of the same names, and `null` removes one.
 */
export const createJsonPatch = `CREATE OR REPLACE FUNCTION json_patch(target TEXT, patch TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS
  $$ SELECT CAST(jsonb_strip_nulls(CAST(target AS jsonb) || CAST(patch AS jsonb)) AS TEXT) $$`;
