/**
 * Metrics that the dashboards and rules already ask for and the gateway does not export. The tests pass over them,
 * and fail for a name that is exported or that nothing asks for: the list can only become shorter.
 */
export const notExportedYet: readonly string[] = ['textgate_config_reloads_total'];
