/** Whether tests that need external services must run: then they fail without them instead of being skipped. */
export const servicesRequired = process.env['REQUIRE_SERVICES'] === '1';
