import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';

/** The header in which a client gives its request a tag. It is never forwarded. */
export const tagHeader = 'x-textgate-tag';

/**
 * The tag of a request, by which its usage is summed up: one of its key's list, `null` without one, or a refusal. The list
 * is closed, so that no text of a client gets into the log, and each key has few sums. No message quotes what was sent.
 */
export function readTag(sent: string | undefined, { tags }: Pick<ApiKey, 'tags'>): string | null | Refusal {
  if (sent === undefined) return null;
  if (tags.includes(sent)) return sent;
  const param = tagHeader;
  if (tags.length === 0)
    return refuse(
      'tag_not_allowed',
      `This key has no tags. Leave out the header '${tagHeader}', or ask the operator to give the key a list of tags (tags).`,
      { param },
    );
  return refuse(
    'tag_not_allowed',
    `The header '${tagHeader}' names no tag of this key. It may be one of: ${tags.join(', ')}. The operator can add others to the key's list (tags).`,
    { param },
  );
}
