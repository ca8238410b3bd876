/** An error as the gateway sends it, in the envelope of an answer or inside a stream. */
export interface ErrorObject {
  readonly message?: string;
  /** What the provider said of it, if it found the request at fault. */
  readonly upstream?: { readonly message?: string | null };
}

/** An error in the gateway's own words, and in the provider's; `unnamed` where it says nothing. */
export function errorText({ message, upstream }: ErrorObject, unnamed = 'the answer failed'): string {
  const said = upstream?.message ?? '';
  return `${message ?? unnamed}${said === '' ? '' : ` It said: ${said}`}`;
}
