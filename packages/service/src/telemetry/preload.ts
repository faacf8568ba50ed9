import fs from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import './telemetry';

/**
 * Loaded by `node --require @drydock/service/preload …`. It starts telemetry before any instrumented module is loaded,
 * and makes stacks readable.
 */

/** The most source maps that are kept. They suffice for the files of one stack, and for an error that repeats. */
const mapsKept = 24;
const maps = new Map<string, SourceMap | null>();

/**
 * The source map of a file. Null for a file without a map, and for a file of a library, because nobody here edits its
 * sources.
 */
function readMap(file: string): SourceMap | null {
  if (file.includes('node_modules') || !path.isAbsolute(file)) return null;
  const kept = maps.get(file);
  if (kept !== undefined) return kept;
  let map: SourceMap | null = null;
  try {
    map = new SourceMap(JSON.parse(fs.readFileSync(`${file}.map`, 'utf8')));
  } catch {
    // Without a map, the position in the compiled file is still useful.
  }
  const [oldest] = maps.keys();
  if (maps.size >= mapsKept && oldest !== undefined) maps.delete(oldest);
  maps.set(file, map);
  return map;
}

/** A frame of a stack. V8 gives it a `toString` of its own, which the types omit. */
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

// Makes stacks name TypeScript files and lines. Node's `--enable-source-maps` does the same, but it keeps the map of
// each loaded module, even of libraries, and needs 10 MB in each process. Here a map is read only when a stack is read.
Error.prepareStackTrace = (error, calls) =>
  [String(error), ...calls.map((call) => `    at ${describe(call)}`)].join('\n');
