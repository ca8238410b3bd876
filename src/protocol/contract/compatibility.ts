export const samplingPolicies = ['strip', 'strict'] as const;
export const unknownFieldPolicies = ['reject', 'ignore'] as const;

/** How strictly requests are read, and what old clients need in answers. A key may override the service's settings. */
export interface Compatibility {
  /** `strip` drops any sampling value; `strict` refuses a value that is not a usual client default. */
  readonly sampling: (typeof samplingPolicies)[number];
  /** What happens to a top-level field that is not in the contract. */
  readonly unknownFields: (typeof unknownFieldPolicies)[number];
  /** Whether a Responses stream ends with `data: [DONE]`, as some other gateways' do. */
  readonly responsesDone: boolean;
  /** Whether the usage of an answer has its charge as `cost`, as OpenRouter's has: strict clients may refuse the field. */
  readonly usageCost: boolean;
  /** Whether a stream has its charge in a comment before its end. */
  readonly chargeComment: boolean;
}

export const defaultCompatibility: Compatibility = {
  sampling: 'strip',
  unknownFields: 'reject',
  responsesDone: false,
  usageCost: false,
  chargeComment: false,
};
