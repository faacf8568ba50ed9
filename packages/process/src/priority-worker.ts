// The thread behind PriorityThread. It sets priorities and reads the CPU time of all processes.
import { parentPort } from 'node:worker_threads';
import { type PriorityMessage, readProcessUse, setNice } from './priority';

/**
 * Kernel threads are skipped. The kernel may give the pid of an ended kernel thread to a process, so the skipped pids
 * are forgotten after this many reads.
 */
const readsBetweenSearches = 20;
const kernelThreads = new Set<number>();
let reads = 0;

parentPort?.on('message', ({ nices, isAsked }: PriorityMessage) => {
  for (const [pid, nice] of nices) setNice(pid, nice);
  if (!isAsked) return;
  if (reads++ % readsBetweenSearches === 0) kernelThreads.clear();
  parentPort?.postMessage([...readProcessUse(kernelThreads).values()]);
});
