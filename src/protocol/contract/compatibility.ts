/** How strictly requests are read, and what old clients need in answers; a key may differ from the service. */
export interface Compatibility {
  /** `strip` takes any sampling value out; `strict` refuses what is not a usual client default. */
  readonly sampling: 'strip' | 'strict';
  /** What becomes of a top-level field that the contract does not know. */
  readonly unknownFields: 'reject' | 'ignore';
  /** Whether a Responses stream ends with `data: [DONE]`, as some other gateways' do. */
  readonly responsesDone: boolean;
}

export const defaultCompatibility: Compatibility = {
  sampling: 'strip',
  unknownFields: 'reject',
  responsesDone: false,
};
