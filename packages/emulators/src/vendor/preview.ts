import { type Call, jsonReply, type Reply } from '../protocol/call';
import type { VendorWorld } from './vendor-world';

const pattern = /^\/preview\/(\d+)\/(.*)$/;

export const isPreview = ({ path }: Call): boolean => pattern.test(path);

/** A package's document root as its visitors see it. */
export function answerPreview(world: VendorWorld, call: Call): Reply {
  world.settle();
  const [, id = '', rest = ''] = pattern.exec(call.path) ?? [];
  const found = world.state.packages.find((candidate) => String(candidate.id) === id);
  const page =
    found === undefined
      ? null
      : world.content.readPage(found.id, rest === '' ? 'index.html' : decodeURIComponent(rest));
  if (page === null) return jsonReply(404, { error: 'no such page' });
  return { status: 200, headers: { 'content-type': typeOf(rest) }, body: page.toString('utf8') };
}

const typeOf = (file: string): string =>
  file.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/html; charset=utf-8';
