/** What is around a secret and no part of it, and how to write the secret; `null` for a secret alone. It is not quoted. */
export function describeSurroundings(secret: string): string | null {
  const text = secret.trim();
  if (text.length > 1 && /^(["'`]).*\1$/s.test(text))
    return 'the quotes at both ends would be a part of it: leave them out (an --env-file and a file of a key have none)';
  // Sent as a key, it would be "Bearer Bearer …".
  return /^bearer\s/i.test(text) ? 'expected the key alone, without Bearer before it' : null;
}
