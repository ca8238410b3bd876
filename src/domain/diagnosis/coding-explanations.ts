import type { Diagnosis } from './call-target.ts';

const lookAtCompression = 'Check the compression of the server and of the proxies before it';

/** What is wrong with a body that is compressed, and what to do, by the code of the fault. */
const explanations = {
  CODING_UNKNOWN: {
    cause: 'the content-encoding of the answer is not known',
    advice: `${lookAtCompression}: up to three of gzip, deflate, br and zstd are decoded.`,
  },
  CODING_UNLABELLED: {
    cause: 'the answer is compressed, but has no content-encoding',
    advice: `${lookAtCompression}: one of them removes the header.`,
  },
  CODING_BROKEN: {
    cause: 'the compressed answer is damaged, or is not in the form that its content-encoding names',
    advice: `${lookAtCompression}.`,
  },
  CODING_CUT: {
    cause: 'the compressed answer ends before its compressed data do',
    advice: `${lookAtCompression}, and their timeouts.`,
  },
  CODING_TOO_LARGE: {
    cause: 'the compressed answer is over 4 MiB long and over a hundred times as long as what was sent',
    advice: `${lookAtCompression}: no model writes such an answer.`,
  },
} as const satisfies Readonly<Record<string, Diagnosis>>;

/** What can be wrong with the codings of a body. */
export type CodingFault = keyof typeof explanations;

/** Explains a fault of a body's codings; `null` for the code of any other fault. */
export function explainCoding(code: string): Diagnosis | null {
  return Object.hasOwn(explanations, code) ? explanations[code as CodingFault] : null;
}
