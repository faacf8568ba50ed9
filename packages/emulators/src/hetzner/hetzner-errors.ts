import { jsonReply, Refusal, type Reply } from '../protocol/call';

const statusOf = {
  unauthorized: 401,
  token_readonly: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  uniqueness_error: 409,
  invalid_input: 422,
  json_error: 400,
  locked: 423,
  protected: 423,
  rate_limit_exceeded: 429,
} as const;

export type HetznerErrorCode = keyof typeof statusOf;

export const errorReply = (code: HetznerErrorCode, message: string, details: unknown = null): Reply =>
  jsonReply(statusOf[code], { error: { code, message, details } });

export const refused = (code: HetznerErrorCode, message: string, details: unknown = null): Refusal =>
  new Refusal(errorReply(code, message, details));

export const invalidField = (name: string, message: string): Refusal =>
  refused('invalid_input', `invalid input in field '${name}'`, { fields: [{ name, messages: [message] }] });
