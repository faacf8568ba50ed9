import { Socket } from 'node:net';
import { type MessageCaps, MessageMeter } from './message-meter';

/**
 * CappedSocket is a socket to Postgres. It breaks with `message_too_large` before anything larger than its caps gets
 * into the driver's memory. No TLS.
 */
export class CappedSocket extends Socket {
  private readonly meter: MessageMeter;

  constructor(caps: MessageCaps) {
    super();
    this.meter = new MessageMeter(caps);
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (Buffer.isBuffer(chunk)) {
      try {
        this.meter.push(chunk);
      } catch (error) {
        this.destroy(error instanceof Error ? error : new Error(String(error)));
        return false;
      }
    }
    return super.push(chunk, encoding);
  }
}
