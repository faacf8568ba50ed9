export { createDispatcher } from './dispatcher';
export { prepareQueue } from './prepare-queue';
export { countUnfinished, firstOrg, overdueStarts, takeDueWorkflows } from './sweep.store';
