export {
  assertBound,
  authorise,
  type Caller,
  type InternalClaims,
  type RequestClaims,
  rememberTokens,
  signInternalToken,
  signRequestToken,
  TokenRefusal,
  tokenKey,
  tokenKeys,
  verifyInternalToken,
  verifyRequestToken,
} from './internal-token';
export { createShares, type Shares } from './shares';
