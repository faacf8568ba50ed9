// The thread behind PriorityThread: sets priorities and reads what every process has used.
import { parentPort } from 'node:worker_threads';
import { type PriorityMessage, readProcessUse, setNice } from './priority';

parentPort?.on('message', ({ nices, isAsked }: PriorityMessage) => {
  for (const [pid, nice] of nices) setNice(pid, nice);
  if (isAsked) parentPort?.postMessage([...readProcessUse().values()]);
});
