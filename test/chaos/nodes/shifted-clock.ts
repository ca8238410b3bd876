/**
 * Loaded into a gateway's process before its own code (`node --import`): the date is wrong by `CLOCK_SHIFT_MS`, as on a
 * machine whose clock was set wrong. Timers, the monotonic clock and the database are not.
 */
const shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0);
const RightDate = Date;

class ShiftedDate extends RightDate {
  constructor(...parts: readonly (number | string | Date)[]) {
    // The constructor has one signature for each number of parts.
    super(...((parts.length === 0 ? [RightDate.now() + shiftMs] : parts) as [number]));
  }

  static override now(): number {
    return RightDate.now() + shiftMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;
