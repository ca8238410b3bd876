/** How sampling parameters and unknown fields may be read: `protocol/contract/compatibility.ts` says what each policy does. */
export const samplingPolicies = ['strip', 'strict'] as const;
export const unknownFieldPolicies = ['reject', 'ignore'] as const;
