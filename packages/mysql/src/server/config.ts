/** Whether this process is a test's, whose servers need not survive a power cut. */
export const isEveryServerEphemeral = (): boolean => process.env['DRYDOCK_EPHEMERAL'] === '1';
