/** Stops the cluster of `jest-global-setup`, which runs in the same process. */
export default async function stopSharedCluster(): Promise<void> {
  await globalThis.stopDrydockTestCluster?.();
}
