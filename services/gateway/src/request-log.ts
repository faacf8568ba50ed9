import { Problem } from '@drydock/contracts/platform/problem';
import type { Log } from '@drydock/service/telemetry/log';
import { isKnownOutage } from '@drydock/service/telemetry/log-error';
import type { Exchange } from './exchange';

export type RequestLog = (exchange: Exchange, nowMs: number) => void;

/** Logs one line for each request: never its headers, its query or its body. */
export function createRequestLog(log: Log): RequestLog {
  // Redacting every line by name costs more than the rest of logging; these members are all ours and none is a secret.
  const lines = log.child({}, { redact: [] });
  return (exchange, nowMs) => {
    const { request, response, error, caller } = exchange;
    const line = {
      method: request.method,
      route: exchange.route,
      status: response.headersSent ? response.statusCode : 0,
      duration_ms: Math.round((nowMs - exchange.startedMs) * 10) / 10,
      request_id: exchange.requestId,
      trace_id: exchange.trace?.traceId,
      org_id: caller?.orgId,
      key_id: caller?.keyId,
      aborted: response.writableFinished ? undefined : true,
    };
    if (error === undefined) lines.info(line, 'request');
    else if (!(error instanceof Problem)) log.error({ ...line, err: error }, 'request');
    else {
      const { code, details, status } = error;
      const why = { ...line, code, internal: details.internal };
      if (status >= 500 && code !== 'overloaded' && !isKnownOutage(error))
        log.error({ ...why, err: details.cause }, 'request');
      else lines.info(why, 'request');
    }
  };
}
