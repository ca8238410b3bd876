/** Reports a fault once until it changes, and `null` once when it is over. */
export function reportChanges(report: (fault: string | null) => void): (fault: string | null) => void {
  let reported: string | null = null;
  return (fault) => {
    if (fault === reported) return;
    reported = fault;
    report(fault);
  };
}
