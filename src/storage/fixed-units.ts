import type { FixedUnit } from './engine.ts';
import { openRecord, settleRecord } from './record-statements.ts';

/** Every fixed unit, for the part of an engine that prepares them. */
export const fixedUnits: readonly FixedUnit[] = [openRecord, settleRecord];
