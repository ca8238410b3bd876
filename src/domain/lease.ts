/**
 * How long a lease lasts after its last renewal, in milliseconds. By the clock of the database it decides what is over; a
 * process that counts it from the beginning of a renewal, by a clock that never jumps, is never later than the database.
 */
export const leaseMs = 15_000;
