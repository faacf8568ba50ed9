import { type Problem, problem } from '@drydock/contracts/platform/problem';
import { answerOfProblem, problemOfError } from '@drydock/service/http';
import { type Exchange, headOf } from './exchange';

/** Sends the problem for `error`, or a 500 without details. A connection whose answer has begun can only be cut. */
export function refuse(exchange: Exchange, error: unknown, isClosing: boolean): void {
  exchange.error = error;
  const { response } = exchange;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  sendProblem(exchange, problemOfError(error), isClosing);
}

function sendProblem(exchange: Exchange, refusal: Problem, isClosing: boolean): void {
  const { allow, ...extra } = refusal.details.extra ?? {};
  const shown = allow === undefined ? refusal : problem(refusal.code, { ...refusal.details, extra });
  const { status, headers, text } = answerOfProblem(
    shown,
    exchange.requestId,
    typeof allow === 'string' ? { allow } : {},
  );
  const own = ['Cache-Control', 'no-store', 'Content-Length', String(Buffer.byteLength(text))];
  for (const [name, value] of Object.entries(headers)) own.push(name, value);
  exchange.response.writeHead(status, headOf(exchange, isClosing, own));
  exchange.response.end(exchange.request.method === 'HEAD' ? undefined : text);
}
