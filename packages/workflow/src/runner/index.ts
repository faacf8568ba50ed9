export { createEngine } from './engine';
export { planRun } from './plan-run.rules';
