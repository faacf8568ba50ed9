export const databaseProblems = {
  database_not_found: { status: 404, title: 'No such database', advice: 'GET /v1/databases lists your databases.' },
  database_backup_not_found: {
    status: 404,
    title: 'No such backup of this database',
    advice: 'GET /v1/databases/{databaseId}/backups lists them.',
  },
  engine_not_offered: {
    status: 422,
    title: 'The engine is not offered here',
    advice:
      'Choose an engine that GET /v1/databases/catalogue lists. ' +
      'Of engine mysql staff fetch the programs of a version to the host of databases, ' +
      'as by npm run engines -- mariadb@10.11.',
    transient: true,
  },
  version_not_offered: {
    status: 422,
    title: 'The platform does not run this major',
    advice: 'Send a version exactly as GET /v1/databases/catalogue has it for the engine of the database.',
    transient: true,
  },
  engine_differs: {
    status: 422,
    title: 'This version is of another engine, or of another flavour of MySQL',
    advice:
      'Stay with the engine and the flavour that the data is of: ' +
      'a backup or a database of MariaDB goes to MariaDB, one of MySQL to MySQL.',
  },
  version_not_newer: {
    status: 422,
    title: 'The database runs this major or a newer one',
    advice: 'Name a newer major; upgradable_to of the catalogue lists them. There is no way back to an older one.',
  },
  high_availability_unavailable: {
    status: 422,
    title: 'No standby can be held here',
    advice: 'Leave high_availability out: this installation has one host of databases and nothing to fail over to.',
    transient: true,
  },
  never_backed_up: {
    status: 422,
    title: 'The database has never been backed up',
    advice: 'Take a backup by POST /v1/databases/{databaseId}/backups, and upgrade once it has completed.',
    transient: true,
  },
  database_not_available: {
    status: 422,
    title: 'The database is not available',
    advice: 'Wait until its status is available; of a failed one status_detail says why.',
    transient: true,
  },
  upgrade_precheck_failed: {
    status: 422,
    title: 'The database cannot be upgraded as it is',
    advice: 'Nothing was changed. Mend what findings names, ask the preflight again, and upgrade then.',
    transient: true,
  },
  upgrade_failed: {
    status: 422,
    title: 'The upgrade was taken back',
    advice: 'The database serves on with its old version and has lost nothing. Try again later, or ask support.',
    transient: true,
  },
  database_content_refused: {
    status: 422,
    title: 'The engine refuses something in the database',
    advice:
      'The database serves on as it was. findings names the object and the reason: change or drop it, and try again.',
    transient: true,
  },
  backup_version_newer: {
    status: 422,
    title: 'The backup was taken from a newer major',
    advice: 'Name the engine version of the backup, or a newer one.',
  },
  size_too_small: {
    status: 422,
    title: 'The backup holds more than this size can store',
    advice: 'Choose a larger size: GET /v1/databases/catalogue lists the sizes with their storage_gb.',
  },
  database_restore_failed: {
    status: 422,
    title: 'The restore was taken back',
    advice: 'The database serves on as it was and has lost nothing. Try again later, or ask support.',
    transient: true,
  },
  upgrade_content_differs: {
    status: 422,
    title: 'The old and the new instance do not hold the same',
    advice: 'Staff compare the two; the old instance is kept. The database serves with the new version meanwhile.',
    transient: true,
  },
  database_not_created: {
    status: 422,
    title: 'The database could not be created',
    advice: 'Nothing is left of it. Try again later, or ask support.',
    transient: true,
  },
} as const;
