/** Whether tests that need external services must run: then they fail without them instead of being skipped. */
export const servicesRequired = process.env['REQUIRE_SERVICES'] === '1';

/** Whether the tests are listed and none is run (`vitest list`): every service counts as there, and nothing is started. */
export const isOnlyListed = process.env['TEST_LISTED'] === '1';
