/**
 * Which queue rings for a workflow. `prompt` is work that somebody waits for (`start_by`) until it has begun: it has slots of its own, so that four restores of an hour each
 * do not make the restart of an application come too late. Everything else, and whatever has begun, goes the `usual` way.
 */
export type Lane = 'usual' | 'prompt';

export const lanes: readonly Lane[] = ['prompt', 'usual'];

export const laneQueueName = (queueName: string, lane: Lane): string => (lane === 'prompt' ? `${queueName}-prompt` : queueName);
