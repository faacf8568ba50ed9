/** The expected content of a restored site, recorded when its backup was taken. */
export interface Sentinels {
  /** Content by path as it is asked for, SHA-256 in hex. */
  files: Array<{ path: string; sha256: string }>;
  tables: Array<{ schema: string; name: string; rows: number }>;
}

/** How many sentinels of each kind are kept: enough to notice a mix-up, few enough to be asked for within seconds. */
export const sentinelsMax = 8;

/** Larger files are not sampled: the restore compares their hashes already. */
const bytesMax = 2 ** 20;

/** An application answers for its own paths, so its files are not asked for. */
export const appEntry = 'app.js';

/** Whether a file is served unchanged: pages are filled in, and hidden files are not served. */
export function isServedAsItIs({ type, path, size }: { type: string; path: string; size: number }): boolean {
  const isPlain = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/.test(path);
  return type === 'file' && size > 0 && size <= bytesMax && isPlain && !/\.(?:html?|php\d?|phtml|cgi)$/i.test(path);
}

/** Keeps `max` of a stream of unknown length, every one as likely. `random` gives 0 to 1. */
export function createSample<Item>(max: number, random: () => number): { offer(item: Item): void; items: Item[] } {
  const items: Item[] = [];
  let offered = 0;
  return {
    items,
    offer: (item) => {
      offered += 1;
      if (items.length < max) items.push(item);
      else {
        const at = Math.floor(random() * offered);
        if (at < max) items[at] = item;
      }
    },
  };
}
