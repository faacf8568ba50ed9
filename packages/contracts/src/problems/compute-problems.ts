export const computeProblems = {
  // Resources that do not exist, or are not the caller's.
  server_not_found: { status: 404, title: 'No such server', advice: 'GET /v1/compute/servers lists your servers.' },
  server_snapshot_not_found: {
    status: 404,
    title: 'No such snapshot of this server',
    advice: 'GET /v1/compute/servers/{serverId}/snapshots lists them.',
  },
  // The snapshot of the request
  snapshot_not_on_server: {
    status: 422,
    title: 'No such snapshot of this server',
    advice: 'Name a snapshot that GET /v1/compute/servers/{serverId}/snapshots lists.',
  },
  snapshot_not_ready: {
    status: 422,
    title: 'The snapshot is not ready',
    advice: 'Wait until its status is available, or name another one.',
    transient: true,
  },
  snapshots_unsupported: {
    status: 422,
    title: "The server's provider has no snapshots",
    advice: 'capabilities of the server says what its provider can do.',
  },
  newer_snapshots_exist: {
    status: 422,
    title: 'The provider can only return to the newest snapshot',
    advice: 'Name the newest one, or delete those that are newer than the one you want.',
    transient: true,
  },
  snapshot_incompatible: {
    status: 422,
    title: 'The snapshot does not fit the machine',
    advice: "Its architecture or the size of its disk is not this machine's; name another one.",
  },
  snapshot_protected: {
    status: 422,
    title: 'The snapshot is protected from deletion',
    advice: 'Ask support to lift the protection at the provider, then try again.',
    transient: true,
  },
  // Orders of servers
  deploy_target_unknown: {
    status: 422,
    title: 'No such range of servers',
    advice: 'Order from one of deploy_targets, or ask the operator of this installation to configure one.',
    transient: true,
  },
  size_not_offered: {
    status: 422,
    title: 'This plan or size is not offered there',
    advice: 'Order one of the plans, specs or sizes that this answer names.',
    transient: true,
  },
  // The state of the server
  server_not_operable: {
    status: 422,
    title: 'The server cannot be acted on now',
    advice: 'Wait until operable of the server is true; if it stays false, ask support.',
    transient: true,
  },
  server_protected: {
    status: 422,
    title: 'The machine is protected from deletion',
    advice: 'Ask support to lift the protection at the provider, then try again.',
    transient: true,
  },
  server_not_running: {
    status: 422,
    title: 'The server is not on',
    advice: 'Power it on instead of restarting it.',
    transient: true,
  },
  rebuild_protected: {
    status: 422,
    title: 'The machine is protected from being overwritten',
    advice: 'Ask support to lift the protection at the provider, then try again.',
    transient: true,
  },
  rebuild_unsupported: {
    status: 422,
    title: "The server's provider cannot rebuild it",
    advice: 'capabilities of the server says what its provider can do; order a new server from the image instead.',
  },
  ssh_keys_unsupported: {
    status: 422,
    title: 'The provider of this compute range takes no SSH keys',
    advice: 'Order without ssh_keys, or at a compute range whose servers have the capability compute:ssh_keys.',
  },
  // Failures of a workflow. They are shown with the workflow, and no request is answered with them
  order_refused: {
    status: 422,
    title: 'The provider does not offer this',
    advice: 'See that the image, the size and the zone exist there and fit each other, then order again.',
  },
  order_failed: {
    status: 422,
    title: 'The provider says that it could not make the machine',
    advice: 'Nothing is charged. Order again.',
  },
  rollback_failed: {
    status: 422,
    title: 'The provider says that its rollback failed',
    advice: 'Look at the server before anything else, then try again or name another snapshot.',
  },
  rebuild_failed: {
    status: 422,
    title: 'The provider says that its rebuild failed',
    advice: 'Look at the server before anything else, then try again.',
  },
  snapshot_failed: {
    status: 422,
    title: 'The provider says that its work on the snapshot failed',
    advice: 'The server was not changed. Try again.',
  },
  deletion_failed: {
    status: 422,
    title: 'The provider says that it could not delete the machine',
    advice: 'The server is as it was. Try again.',
  },
  power_failed: {
    status: 422,
    title: 'The provider says that it could not change the power',
    advice: 'Look at power_state of the server, then try again.',
  },
  guest_unresponsive: {
    status: 422,
    title: 'The guest did not shut down when it was asked to',
    advice: 'Shut it down from inside, or send force: true, which cuts its power.',
  },
  provider_not_accepted: {
    status: 503,
    title: 'The provider did not take the order',
    advice: 'It was sent once and nothing came of it. Look at the server, then try again.',
    transient: true,
  },
} as const;
