import { describeDecision, grantSlot, lockKey, saveKey, serveLine } from './key-functions.ts';
import { followLimits, forgetIdleStarts, freeLost } from './search-functions.ts';
import { leaveLine, releaseSlot, takeEndedWaits, takeSlot } from './step-functions.ts';

/** Every function, each behind those that it calls. */
export const slotFunctions = [
  lockKey,
  saveKey,
  grantSlot,
  describeDecision,
  serveLine,
  takeSlot,
  takeEndedWaits,
  releaseSlot,
  leaveLine,
  followLimits,
  freeLost,
  forgetIdleStarts,
];
