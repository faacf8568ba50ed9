export { createDispatcher } from './dispatcher';
export { prepareQueue } from './queue';
export { countUnfinished, firstOrg, overdueStarts, takeDueWorkflows } from './sweep.store';
