import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * The fields of every log line of one request or one workflow run. Mutable, because the organisation is known only
 * after the token was verified.
 */
export interface LogContext {
  request_id?: string;
  workflow_id?: string;
  org_id?: string;
}

const storage = new AsyncLocalStorage<LogContext>();

/** Runs `work` so that each line logged in it, however deep, has the fields of `context`. */
export const withLogContext = <T>(context: LogContext, work: () => T): T => storage.run(context, work);

export const currentLogContext = (): LogContext | undefined => storage.getStore();
