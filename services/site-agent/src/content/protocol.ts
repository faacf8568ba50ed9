import type { Duplex } from 'node:stream';
import { z } from 'zod';

/**
 * A message between the site agent and its content child: the number of its question, a JSON value, and perhaps bytes.
 */
export interface Frame {
  id: number;
  value: unknown;
  body: Buffer;
}

const headBytes = 12;
/** The most bytes of a frame. A page has fewer. */
const frameBytesMax = 32 * 2 ** 20;

/** The frame is `[length of JSON][length of body][id]`, four bytes each, followed by the JSON and the body. */
export function encodeFrame(id: number, value: unknown, body: Buffer = Buffer.alloc(0)): Buffer {
  const json = Buffer.from(JSON.stringify(value));
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32BE(json.length, 0);
  head.writeUInt32BE(body.length, 4);
  head.writeUInt32BE(id, 8);
  return Buffer.concat([head, json, body]);
}

/**
 * Sends all frames of one turn of the event loop together, because each write is a system call and wakes the receiver.
 */
export function sendFrame(way: Duplex, frame: Buffer): void {
  if (way.writableCorked === 0) {
    way.cork();
    setImmediate(() => way.uncork());
  }
  way.write(frame);
}

/** Assembles frames from the pieces of a stream. Throws for a frame that is too long or whose JSON is invalid. */
export class FrameReader {
  private pieces: Buffer[] = [];
  private held = 0;
  private wanted = headBytes;

  *read(piece: Buffer): Generator<Frame> {
    this.pieces.push(piece);
    this.held += piece.length;
    // Pieces are joined only when the head is there, and again when the whole frame is there. Otherwise a large frame
    // would be copied for each piece.
    while (this.held >= this.wanted) {
      const bytes = this.pieces.length === 1 ? (this.pieces[0] ?? piece) : Buffer.concat(this.pieces);
      const [json, body] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
      const whole = headBytes + json + body;
      if (whole > frameBytesMax) throw new Error(`a frame of ${whole} bytes`);
      const isWhole = bytes.length >= whole;
      if (isWhole) {
        const value: unknown = JSON.parse(bytes.toString('utf8', headBytes, headBytes + json));
        yield { id: bytes.readUInt32BE(8), value, body: bytes.subarray(headBytes + json, whole) };
      }
      const rest = isWhole ? bytes.subarray(whole) : bytes;
      this.pieces = rest.length === 0 ? [] : [rest];
      this.held = rest.length;
      this.wanted = isWhole ? headBytes : whole;
    }
  }
}

/** A visitor's request as the application gets it. */
const forwardedSchema = z.object({
  /** The number of the application's process. */
  process: z.int(),
  method: z.string(),
  url: z.string(),
  /** Names and values, alternating. */
  headers: z.array(z.string()),
  has_body: z.boolean(),
});
export type Forwarded = z.infer<typeof forwardedSchema>;

/**
 * A question of the site agent to the child that has a release's files. Each question wakes the child, and its answer
 * wakes the agent. So a visit is one question, about the restart files and the file at the path together.
 */
export const questionSchema = z.discriminatedUnion('ask', [
  z.object({
    ask: z.literal('visit'),
    path: z.string(),
    /** True for GET and HEAD, the only methods that are answered with a file. */
    is_read: z.boolean(),
    /** Whether the answer must carry the file's first bytes. */
    is_whole: z.boolean(),
    /**
     * Whether a process of the application is running. The release then counts as an application even if its app.js has
     * just been removed.
     */
    app_runs: z.boolean(),
    /** Whether a page with queries may be rendered. If not, the answer to a visit of such a page is `page_waits`. */
    may_render: z.boolean(),
    /**
     * The request that the application gets if no file answers it. The child forwards it at once to the running
     * process, unless the restart files ask for a fresh process. Null if the child must not forward.
     */
    forward: z.object({ request: forwardedSchema, restart_seconds: z.number() }).nullable(),
  }),
  z.object({ ask: z.literal('forward'), request: forwardedSchema }),
  z.object({ ask: z.literal('bytes'), handle: z.int(), start: z.int(), length: z.int() }),
  z.object({ ask: z.literal('close'), handle: z.int() }),
  z.object({ ask: z.literal('describe') }),
  z.object({ ask: z.literal('touch_restart'), now_ms: z.number() }),
]);
export type Question = z.infer<typeof questionSchema>;

/** A later message of the site agent about a forwarded request. Its frame has the number of the question. */
export const hostSaysSchema = z.object({
  /**
   * `more`: send another piece of the answer. `body`: a piece of the request's body, which `want` asked for.
   * `body_end`: the end of the body. `leave`: the visitor has gone. `no_connection`: the application accepted no
   * connection.
   */
  say: z.enum(['more', 'body', 'body_end', 'leave', 'no_connection']),
});
export type HostSays = z.infer<typeof hostSaysSchema>;

/** A message of the child about a forwarded request. */
export const childSaysSchema = z.discriminatedUnion('say', [
  /** A piece of the answer, in the body of the frame. After each piece except the last the child waits for `more`. */
  z.object({
    say: z.literal('answer'),
    /** Present only in the first piece. */
    head: z.object({ status: z.int(), message: z.string(), headers: z.array(z.string()) }).nullable(),
    /** `broken`: the application's answer ended early. */
    end: z.enum(['whole', 'broken']).nullable(),
  }),
  /** Asks for another piece of the request's body. */
  z.object({ say: z.literal('want') }),
  /**
   * Asks for a connection to the application. The site agent sends it over the IPC channel, with the number of the
   * question.
   */
  z.object({ say: z.literal('connect') }),
  /** Reports that no part of an answer came. */
  z.object({ say: z.literal('failed'), reason: z.string() }),
]);
export type ChildSays = z.infer<typeof childSaysSchema>;

/** Whether a message belongs to a forwarded request. A question and its answer have no `say`. */
export const isSaid = (value: unknown): boolean => typeof value === 'object' && value !== null && 'say' in value;

/**
 * The IPC message that comes with a connection to the application. `id` is the number of the question whose request the
 * content child forwards over the connection.
 */
export const connectionSchema = z.object({ id: z.int() });

const fileSchema = z.object({
  kind: z.literal('file'),
  /** The handle by which more of the file is requested. Null if the answer's body is the whole file. */
  handle: z.int().nullable(),
  size: z.int(),
  /** Nanoseconds, in base 36. */
  mtime: z.string(),
  extension: z.string(),
});

const foundSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('none') }),
  z.object({ kind: z.literal('folder'), location: z.string() }),
  /** The page was rendered. The answer's body is its HTML. */
  z.object({ kind: z.literal('page') }),
  /** The page must be rendered, but `may_render` is false. */
  z.object({ kind: z.literal('page_waits') }),
  z.object({ kind: z.literal('page_failed'), is_unavailable: z.boolean(), reason: z.string() }),
  fileSchema,
]);

export const visitSchema = z.object({
  /** Null for a release that is no application. */
  app: z.object({ restart_seconds: z.number(), restarts_always: z.boolean() }).nullable(),
  found: foundSchema,
});
export type Visit = z.infer<typeof visitSchema>;
export type Found = z.infer<typeof foundSchema>;
export type FoundFile = z.infer<typeof fileSchema>;

export const describedSchema = z.object({ has_app: z.boolean() });
export const touchedSchema = z.object({ seconds: z.number().nullable() });
/** The message that replaces an answer if the question has failed. */
export const failureSchema = z.object({ failure: z.string() });
/**
 * Reports a database session that the child has opened. It answers no question. The site agent ends the session at once
 * if `is_overrun`, and otherwise when the child ends in the middle of its work.
 */
export const sessionSchema = z.object({ backend_pid: z.int(), is_overrun: z.boolean() });

/** The most bytes of a file in the answer to a visit. */
export const firstBytes = 65_536;
/** The most bytes of a file in one later answer. */
export const chunkBytes = 262_144;
/** The most bytes of an application's answer in one piece. */
export const pieceBytes = 65_536;
