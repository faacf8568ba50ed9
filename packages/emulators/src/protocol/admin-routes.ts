import { z } from 'zod';
import {
  type Call,
  type CallLog,
  emptyReply,
  jsonReply,
  type PathValues,
  pathValue,
  Refusal,
  type Route,
  routeAt,
} from './call';
import type { Clock } from './clock';
import { type FaultOrders, faultOrderSchema } from './faults';
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

/** The content of a disk: text by path. The content is small, because only tests and demonstrations use it. */
export const diskSchema = z.record(z.string(), z.string());
type Disk = z.infer<typeof diskSchema>;

const fileBytesMax = 64 * 1024;
const filesMax = 100;

/** Finds a machine's disk. @throws Refusal when the caller has no such machine */
export type FindDisk = (call: Call, id: string) => { disk: Disk; save(disk: Disk): void };

/**
 * Routes for the content of a machine's disk, which its owner would change over ssh. A PUT of
 * `/emulator/servers/{id}/disk/srv/state` writes its body to `/srv/state`.
 */
export const diskRoutes = (find: FindDisk): Route[] => {
  const located = (call: Call, values: PathValues) => ({
    ...find(call, pathValue(values, 'id')),
    file: `/${pathValue(values, 'file')}`,
  });
  return [
    routeAt('GET', '/emulator/servers/:id/disk', (call, values) =>
      jsonReply(200, { files: Object.keys(find(call, pathValue(values, 'id')).disk).sort() }),
    ),
    routeAt('GET', '/emulator/servers/:id/disk/*file', (call, values) => {
      const { disk, file } = located(call, values);
      const content = Object.hasOwn(disk, file) ? disk[file] : undefined;
      if (content === undefined) return jsonReply(404, { error: 'no such file' });
      return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: content };
    }),
    routeAt('PUT', '/emulator/servers/:id/disk/*file', (call, values) => {
      const { disk, file, save } = located(call, values);
      if (call.body.length > fileBytesMax || (Object.keys(disk).length >= filesMax && !(file in disk)))
        throw new Refusal(jsonReply(422, { error: 'the disk is full' }));
      save({ ...disk, [file]: call.body.toString('utf8') });
      return emptyReply(204);
    }),
    routeAt('DELETE', '/emulator/servers/:id/disk/*file', (call, values) => {
      const { disk, file, save } = located(call, values);
      const { [file]: _removed, ...rest } = disk;
      save(rest);
      return emptyReply(204);
    }),
  ];
};
