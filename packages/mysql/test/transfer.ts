import { dumpDatabase } from '../src/dump/dump-database';
import type { Manifest, Section } from '../src/dump/manifest';
import { type LoadResult, loadDatabase } from '../src/load/load-database';
import type { MysqlServer } from '../src/server/mysql';

const optionsOf = ({
  admin,
  engine: { flavour, release },
}: MysqlServer): { admin: MysqlServer['admin']; flavour: typeof flavour; release: string } => ({
  ...{ admin, flavour, release },
});

/** Streams the content of one server into another. */
export const transfer = (from: MysqlServer, to: MysqlServer): Promise<LoadResult> =>
  loadDatabase({ ...optionsOf(to), sections: dumpDatabase(optionsOf(from)) });

/** Loads the definitions of one server into another, from sections without rows. */
export async function transferDefinitions(from: MysqlServer, to: MysqlServer): Promise<LoadResult> {
  async function* definitions(): AsyncGenerator<Section> {
    for await (const section of dumpDatabase(optionsOf(from))) {
      if (!section.path.startsWith('data/')) yield section;
      // The rows are read, because the manifest counts them.
      else for await (const _ of section.content);
    }
  }
  return loadDatabase({ ...optionsOf(to), sections: definitions(), isTrial: true });
}

export interface Held {
  content: Record<string, unknown>;
  manifest: Manifest;
}

/** Returns a dump as values. The GTID is left out, because a restored server has other transactions. */
export async function holdDump(server: MysqlServer): Promise<Held> {
  const found = new Map<string, unknown>();
  for await (const section of dumpDatabase(optionsOf(server))) {
    const chunks: Buffer[] = [];
    for await (const chunk of section.content) chunks.push(chunk);
    if (section.path.endsWith('.json')) found.set(section.path, JSON.parse(Buffer.concat(chunks).toString()));
  }
  const { gtid: _, ...content } = found.get('content.json') as Record<string, unknown>;
  return { content, manifest: found.get('manifest.json') as Manifest };
}

/** Yields the sections of a dump, with a changed `content.json`. */
export async function* changed(
  sections: AsyncIterable<Section>,
  change: (content: string) => string,
): AsyncGenerator<Section> {
  for await (const section of sections) {
    if (section.path !== 'content.json') {
      yield section;
      continue;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of section.content) chunks.push(chunk);
    const text = change(Buffer.concat(chunks).toString());
    yield {
      path: section.path,
      content: (async function* () {
        yield Buffer.from(text);
      })(),
    };
  }
}
