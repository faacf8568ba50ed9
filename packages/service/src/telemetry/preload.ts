import fs from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import './telemetry';

/**
 * `node --require @drydock/service/preload …`: telemetry, before anything that is instrumented is loaded, and readable
 * stacks.
 */

/** Enough for the files of one stack. An error that repeats finds its maps here. */
const mapsKept = 24;
const maps = new Map<string, SourceMap | null>();

/** Null for a file that has no map, and for a library's: nobody here edits its sources. */
function readMap(file: string): SourceMap | null {
  if (file.includes('node_modules') || !path.isAbsolute(file)) return null;
  const kept = maps.get(file);
  if (kept !== undefined) return kept;
  let map: SourceMap | null = null;
  try {
    map = new SourceMap(JSON.parse(fs.readFileSync(`${file}.map`, 'utf8')));
  } catch {
    // The compiled position is still of use.
  }
  const [oldest] = maps.keys();
  if (maps.size >= mapsKept && oldest !== undefined) maps.delete(oldest);
  maps.set(file, map);
  return map;
}

/** V8 prints a call itself, which the types do not say. */
type Call = NodeJS.CallSite & { toString(): string };

function describe(call: Call): string {
  const text = call.toString();
  const [file, line, column] = [call.getFileName(), call.getLineNumber(), call.getColumnNumber()];
  if (!file || line === null || column === null) return text;
  const entry = readMap(file)?.findEntry(line - 1, column - 1);
  if (entry === undefined || !('originalSource' in entry)) return text;
  const source = path.resolve(path.dirname(file), entry.originalSource);
  return text.replace(`${file}:${line}:${column}`, `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`);
}

// Stacks name TypeScript files and lines. Node's `--enable-source-maps` does so too. But it keeps the map of each
// loaded module, those of libraries as well, which takes 10 MB of each process. This reads a map when a stack is read.
Error.prepareStackTrace = (error, calls) =>
  [String(error), ...calls.map((call) => `    at ${describe(call)}`)].join('\n');
