import type { samplingPolicies, unknownFieldPolicies } from '../../shared/compatibility-policies.ts';
import type { ShownCharge } from '../text.ts';

/** How strictly requests are read, and what old clients need in answers. A key may override the service's settings. */
export interface Compatibility extends ShownCharge {
  /** `strip` drops any sampling value; `strict` refuses a value that is not a usual client default. */
  readonly sampling: (typeof samplingPolicies)[number];
  /** What happens to a top-level field that is not in the contract. */
  readonly unknownFields: (typeof unknownFieldPolicies)[number];
  /** Whether a Responses stream ends with `data: [DONE]`, as some other gateways' do. */
  readonly responsesDone: boolean;
}

export const defaultCompatibility: Compatibility = {
  sampling: 'strip',
  unknownFields: 'reject',
  responsesDone: false,
  usageCost: false,
  chargeComment: false,
};
