/** From this length on, a request body is let go when it is written, in UTF-16 code units. */
const leastChars = 16_384;

/** Whether letting a body go saves more memory than its iteration costs. */
export function isLongBody(body: string | null): body is string {
  return body !== null && body.length >= leastChars;
}

/**
 * A request body that is given once and then let go. undici keeps the bytes of a string until its answer has ended, which
 * for streams with long prompts is most of their memory. It needs a `content-length` beside it.
 */
export class LongBody implements Iterable<string> {
  #body: string | null;

  constructor(body: string) {
    this.#body = body;
  }

  *[Symbol.iterator](): Generator<string, void, undefined> {
    const body = this.#body;
    this.#body = null;
    // Without the error, undici would send an empty request before it notices.
    if (body === null) throw new Error('a long body was asked for twice');
    yield body;
  }
}
