import { registerHooks } from 'node:module';

// The parser imports its schema without the attribute that Node requires for JSON.
const hooks = registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith('.json') ? { ...context, importAttributes: { type: 'json' } } : context),
});
export const { NoOperationTraceWriter, convertWorkflowTemplate, parseWorkflow } =
  await import('@actions/workflow-parser');
hooks.deregister();
