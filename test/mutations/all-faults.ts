import { budgetFaults } from './budget-faults.ts';
import { claimFaults } from './claim-faults.ts';
import { groupFaults } from './group-faults.ts';
import { hedgeFaults } from './hedge-faults.ts';
import { meterFaults } from './meter-faults.ts';
import type { Mutation } from './mutation.ts';
import { nodeFaults } from './node-faults.ts';
import { priceFaults } from './price-faults.ts';
import { requestFaults } from './request-faults.ts';
import { upstreamLimiterFaults } from './upstream-limiter-faults.ts';
import { routingFaults } from './routing-faults.ts';
import { scorecardFaults } from './scorecard-faults.ts';
import { quotaFaults } from './quota-faults.ts';
import { statementFaults } from './statement-faults.ts';
import { usageFaults } from './usage-faults.ts';
import { webhookFaults } from './webhook-faults.ts';

/** All deliberate faults. */
export const mutations: readonly Mutation[] = [
  ...requestFaults,
  ...claimFaults,
  ...priceFaults,
  ...nodeFaults,
  ...budgetFaults,
  ...groupFaults,
  ...hedgeFaults,
  ...meterFaults,
  ...upstreamLimiterFaults,
  ...routingFaults,
  ...scorecardFaults,
  ...quotaFaults,
  ...statementFaults,
  ...usageFaults,
  ...webhookFaults,
];
