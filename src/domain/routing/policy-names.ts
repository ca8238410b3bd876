/** How the routes of a model are ordered for a request; `policies.ts` has what each of them does. */
export const policyNames = ['order', 'least_in_flight', 'fastest', 'cheapest', 'affinity'] as const;

export type PolicyName = (typeof policyNames)[number];
