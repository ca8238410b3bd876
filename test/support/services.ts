/** Whether tests that need more than this checkout are wanted: then they fail rather than be skipped. */
export const servicesRequired = process.env['REQUIRE_SERVICES'] === '1';
