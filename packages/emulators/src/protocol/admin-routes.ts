import { z } from 'zod';
import { type Call, type CallLog, emptyReply, jsonReply, Refusal, type Route, routeAt } from './call';
import type { Clock } from './clock';
import { type FaultOrders, faultOrderSchema } from './fault-orders';
import type { LedgerFile } from './state-file';

export interface AdminTools {
  clock: Clock;
  faults: FaultOrders;
  calls: CallLog;
  ledger: LedgerFile;
  /** Saves the clock in the emulator's state. */
  save(): void;
}

const clockSchema = z.strictObject({
  scale: z.number().min(0).max(100_000).optional(),
  advanceSeconds: z.number().min(0).optional(),
});

/** Parses the JSON body of a call below /emulator. @throws Refusal 422 */
export function parseAdmin<T>(schema: z.ZodType<T>, call: Call): T {
  try {
    return schema.parse(JSON.parse(call.body.toString('utf8')));
  } catch (error) {
    throw new Refusal(jsonReply(422, { error: error instanceof Error ? error.message : String(error) }));
  }
}

/** The routes that every emulator has below /emulator. The emulator checks the admin token before it calls a route. */
export const adminRoutes = ({ clock, faults, calls, ledger, save }: AdminTools): Route[] => [
  routeAt('GET', '/emulator/clock', () =>
    jsonReply(200, { now: new Date(clock.now()).toISOString(), scale: clock.anchor.scale }),
  ),
  routeAt('PUT', '/emulator/clock', (call) => {
    clock.change(parseAdmin(clockSchema, call));
    save();
    return jsonReply(200, { now: new Date(clock.now()).toISOString(), scale: clock.anchor.scale });
  }),
  routeAt('GET', '/emulator/faults', () => jsonReply(200, { faults: faults.list() })),
  routeAt('POST', '/emulator/faults', (call) => {
    faults.add(parseAdmin(faultOrderSchema, call));
    return emptyReply(204);
  }),
  routeAt('DELETE', '/emulator/faults', () => {
    faults.clear();
    return emptyReply(204);
  }),
  routeAt('GET', '/emulator/calls', () => jsonReply(200, { calls: calls.list() })),
  routeAt('GET', '/emulator/ledger', () => jsonReply(200, { entries: ledger.read() })),
];
