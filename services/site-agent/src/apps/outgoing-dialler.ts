import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { z } from 'zod';
import { codeOf, type Outgoing } from './outgoing';

const questionMs = 10_000;
const questionBytesMax = 1_024;

const questionSchema = z.union([
  z.object({ dial: z.object({ host: z.string(), port: z.number() }) }),
  z.object({ lookup: z.string().min(1).max(253) }),
  z.object({ ticket: z.string() }),
]);

/**
 * Connects for the sockets of a site's application (`outgoing-preload.ts`). A connection sends one line of JSON and
 * gets one back. If it asks to connect, it is closed after the answer. If it shows a ticket, it is joined to the
 * connection that was made for the ticket.
 */
export class OutgoingDialler {
  private readonly outgoing: Outgoing;
  private readonly dialled = new Map<string, Socket>();

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }

  /** Serves one connection of the application's. */
  accept(client: Socket): void {
    client.on('error', () => client.destroy());
    client.setTimeout(questionMs, () => client.destroy());
    this.outgoing
      .hearUntil(client, '\n', questionBytesMax)
      .then((line) => this.answer(client.setTimeout(0), line))
      .catch(() => client.destroy());
  }

  private async answer(client: Socket, line: string): Promise<void> {
    const question = questionSchema.parse(JSON.parse(line));
    if ('ticket' in question) {
      const upstream = this.dialled.get(question.ticket);
      if (upstream === undefined) return void client.destroy();
      this.dialled.delete(question.ticket);
      this.outgoing.join(client, upstream);
      return;
    }
    const told =
      'dial' in question
        ? this.dial(question.dial)
        : this.outgoing.lookup(question.lookup).then((addresses) => ({ addresses }));
    client.end(JSON.stringify(await told.catch((error: unknown) => ({ code: codeOf(error) }))));
  }

  private async dial({ host, port }: { host: string; port: number }): Promise<{ ticket: string }> {
    const ticket = randomUUID();
    const upstream = await this.outgoing.dial(host, port);
    this.dialled.set(ticket, upstream);
    setTimeout(() => {
      if (this.dialled.delete(ticket)) upstream.destroy();
    }, questionMs).unref();
    return { ticket };
  }
}
