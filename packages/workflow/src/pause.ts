import type { WorkflowListener } from './listener';

export interface Pauses {
  /** Resolves once the workflow has changed, `ms` have passed or `signal` is aborted, whichever is first. Changes since the last pause count. */
  pause(ms: number): Promise<void>;
  close(): void;
}

/** With a listener a change ends the pause; without one only the clock does. */
export function pausesUntilChange(workflowId: string, listener?: WorkflowListener, signal?: AbortSignal): Pauses {
  let missed = false;
  let wake = (): void => {
    missed = true;
  };
  const heard = (): void => wake();
  const forget = listener?.onChange(workflowId, heard);
  signal?.addEventListener('abort', heard);
  return {
    pause: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(end, missed || signal?.aborted === true ? 0 : ms);
        function end(): void {
          clearTimeout(timer);
          missed = false;
          wake = () => {
            missed = true;
          };
          resolve();
        }
        wake = end;
      }),
    close: () => {
      forget?.();
      signal?.removeEventListener('abort', heard);
    },
  };
}
