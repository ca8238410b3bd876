export const samplingPolicies = ['strip', 'strict'] as const;
export const unknownFieldPolicies = ['reject', 'ignore'] as const;

/** How strictly requests are read, and what old clients need in answers; a key may differ from the service. */
export interface Compatibility {
  /** `strip` takes any sampling value out; `strict` refuses what is not a usual client default. */
  readonly sampling: (typeof samplingPolicies)[number];
  /** What becomes of a top-level field that the contract does not know. */
  readonly unknownFields: (typeof unknownFieldPolicies)[number];
  /** Whether a Responses stream ends with `data: [DONE]`, as some other gateways' do. */
  readonly responsesDone: boolean;
}

export const defaultCompatibility: Compatibility = {
  sampling: 'strip',
  unknownFields: 'reject',
  responsesDone: false,
};
