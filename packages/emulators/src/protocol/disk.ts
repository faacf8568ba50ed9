import { z } from 'zod';
import { type Call, emptyReply, jsonReply, type PathValues, pathValue, Refusal, type Route, routeAt } from './call';

/** The content of a disk: text by path. The content is small, because only tests and demonstrations use it. */
export const diskSchema = z.record(z.string(), z.string());
export type Disk = z.infer<typeof diskSchema>;

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
