const sslRequestCode = 80_877_103;
const gssRequestCode = 80_877_104;

/**
 * Whether the client's bytes request encryption. The server answers that with a single byte, which is not a message.
 */
export function isEncryptionRequest(bytes: Buffer): boolean {
  if (bytes.length !== 8) return false;
  const code = bytes.readUInt32BE(4);
  return code === sslRequestCode || code === gssRequestCode;
}

/** Terminate has no answer. */
export const isTerminate = (bytes: Buffer): boolean => bytes.length === 5 && bytes[0] === 0x58;
