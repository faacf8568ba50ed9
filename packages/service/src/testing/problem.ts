import type { ServiceAnswer } from './call-service';

/** The status and code of the problem, such as `404 site_not_found`. The code is empty if the answer is no problem. */
export const refusalOf = ({ status, json }: ServiceAnswer): string =>
  `${status} ${(json as { code?: string } | undefined)?.code ?? ''}`;

/** The answer without the parts that differ between requests, so that two answers can be compared. */
export function withoutRequestId({ status, json, headers }: ServiceAnswer): {
  status: number;
  body: object;
  headers: object;
} {
  const { request_id: _requestId, ...body } = json as Record<string, unknown>;
  const { 'x-request-id': _id, date: _date, traceparent: _traceparent, ...stable } = headers;
  return { status, body, headers: stable };
}
