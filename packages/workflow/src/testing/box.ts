import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * A folder that contains one text. A box changes like a site: the new text is staged beside the old text, a rename
 * switches to the new text, and the old text is kept until `retire`. A box refuses old fences and writes each call to a
 * ledger.
 */
export interface Box {
  stage(text: string, by: Caller): void;
  unstage(by: Caller): void;
  /** Switches to the staged text. Does nothing if no text is staged, so a second call does no harm. */
  swap(by: Caller): void;
  swapBack(by: Caller): void;
  retire(by: Caller): void;
}

interface Caller {
  fence: string;
  workflowId: string;
}

export const ledgerFile = (boxes: string): string => path.join(boxes, 'ledger.ndjson');
export const currentText = (boxes: string, id: string): string => readFileSync(path.join(boxes, id, 'current'), 'utf8');
/** The names of the files that a run uses and that still exist. A run that has ended must leave none of them. */
export const leftovers = (boxes: string, id: string): string[] =>
  ['staged', 'previous'].filter((name) => existsSync(path.join(boxes, id, name)));

export function createBox(boxes: string, id: string, text: string): void {
  mkdirSync(path.join(boxes, id), { recursive: true });
  writeFileSync(path.join(boxes, id, 'current'), text);
}

export function openBox(boxes: string, id: string): Box {
  const at = (name: string): string => path.join(boxes, id, name);
  const change = (op: string, by: Caller, effect: () => void): void => {
    const highest = existsSync(at('fence')) ? BigInt(readFileSync(at('fence'), 'utf8')) : 0n;
    const isRefused = BigInt(by.fence) < highest;
    if (!isRefused) {
      writeFileSync(at('fence'), by.fence);
      effect();
    }
    const digest = createHash('sha256')
      .update(readFileSync(at('current')))
      .digest('hex');
    const line = {
      time: new Date().toISOString(),
      resource: id,
      op,
      fence: by.fence,
      workflow_id: by.workflowId,
      outcome: isRefused ? 'refused' : 'accepted',
      digest,
    };
    appendFileSync(ledgerFile(boxes), `${JSON.stringify(line)}\n`);
    if (isRefused) throw new Error('stale fence');
  };
  return {
    stage: (text, by) => change('stage', by, () => writeFileSync(at('staged'), text)),
    unstage: (by) => change('unstage', by, () => rmSync(at('staged'), { force: true })),
    swap: (by) =>
      change('swap', by, () => {
        if (!existsSync(at('staged'))) return;
        if (!existsSync(at('previous'))) {
          writeFileSync(at('copying'), readFileSync(at('current')));
          renameSync(at('copying'), at('previous'));
        }
        renameSync(at('staged'), at('current'));
      }),
    swapBack: (by) =>
      change('swap_back', by, () => {
        if (existsSync(at('previous'))) renameSync(at('previous'), at('current'));
      }),
    retire: (by) => change('retire', by, () => rmSync(at('previous'), { force: true })),
  };
}
