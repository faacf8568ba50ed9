// The thread behind PriorityThread. It sets priorities and reads the CPU time of all processes.
import { parentPort } from 'node:worker_threads';
import { type PriorityMessage, readProcessUse, setNice } from './priority';

parentPort?.on('message', ({ nices, isAsked }: PriorityMessage) => {
  for (const [pid, nice] of nices) setNice(pid, nice);
  if (isAsked) parentPort?.postMessage([...readProcessUse().values()]);
});
