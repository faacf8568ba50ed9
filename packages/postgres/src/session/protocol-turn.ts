const sslRequestCode = 80_877_103;
const gssRequestCode = 80_877_104;

/** Whether the client's bytes are a request for encryption, which the server answers by a single byte that is no message. */
export function isEncryptionRequest(bytes: Buffer): boolean {
  if (bytes.length !== 8) return false;
  const code = bytes.readUInt32BE(4);
  return code === sslRequestCode || code === gssRequestCode;
}

/** Terminate has no answer. */
export const isTerminate = (bytes: Buffer): boolean => bytes.length === 5 && bytes[0] === 0x58;
