import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';

/** Whether a text is a key of a client or a token of an operator. */
export type IsSecret = (text: string) => boolean;

/** The fields of a key and of a payment that have free text, and are shown in lists and in the audit. */
interface FreeTexts {
  readonly name?: string | undefined;
  readonly reference?: string | undefined;
  readonly tags?: readonly string[] | null | undefined;
}

/** The refusal of a text with a key or a token in it, which was put into the wrong place; `null` for any other. */
export function findSecretText({ name, reference, tags }: FreeTexts, isSecret: IsSecret): Refusal | null {
  const fields = { name: [name ?? ''], reference: [reference ?? ''], tags: tags ?? [] };
  for (const [param, texts] of Object.entries(fields))
    if (texts.some((text) => [text, ...text.split(/\s+/)].some(isSecret)))
      return refuse(
        'invalid_value',
        `Invalid '${param}': it has a key or a token in it, and all who may read keys would be shown it.`,
        { param },
      );
  return null;
}
