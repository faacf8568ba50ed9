import { copyLargeObjects } from './copy/large-objects';
import { readHorizon, writeHorizon } from './horizon';
import { sendMarker } from './marker';
import { type Move, withStage } from './session';

/** When the target is less than a second behind, the rest takes only a moment. */
const nearMs = 1_000;
const markersMax = 60;
const markerLimitMs = 30_000;

/**
 * Stage: waits until the target is less than a second behind, copies changes of large objects once more, and writes the
 * target's pages to disk, so that no checkpoint runs in the first seconds of its service. On the offline path there is
 * nothing to wait for. Throws `not_caught_up` if the target stays behind.
 */
export async function catchUp(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    if (move.path === 'logical') {
      for (let sent = 0; sent < markersMax; sent++) if ((await sendMarker(stage, markerLimitMs)) < nearMs) break;
      await writeHorizon(
        stage,
        await copyLargeObjects(await stage.reader('old'), await stage.keeper(), await readHorizon(stage)),
      );
    }
    await (await stage.server('target')).query('checkpoint');
    move.progress?.(1);
  });
}
