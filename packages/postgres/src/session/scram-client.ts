import pg from 'pg';

/**
 * The driver's methods that a session replaces or calls: the driver itself answers every kind of challenge. The test
 * checks that the driver still calls these.
 */
interface DriverConnection {
  stream: { destroy(error: Error): void };
  emit(event: 'error', error: Error): void;
  once(event: 'authenticationOk', listener: () => void): void;
}

type Handler = (this: pg.Client, message: unknown) => void;
const driver = pg.Client.prototype as unknown as Record<'_handleAuthSASLFinal' | '_handleReadyForQuery', Handler>;

/**
 * ScramClient proves that it knows the password without ever sending it. It refuses a server that asks for the password
 * in clear text or as MD5, and one that accepts the client without proving that it knows the password, too. Another
 * program may have taken our server's port while that server was down.
 */
export class ScramClient extends pg.Client {
  private hasServerProof = false;
  private isRefused = false;

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.driverConnection().once('authenticationOk', () => {
      if (!this.hasServerProof) this.refuse('lets anybody in');
    });
  }

  protected _handleAuthCleartextPassword(): void {
    this.refuse('asks for the password in clear');
  }

  protected _handleAuthMD5Password(): void {
    this.refuse('asks for the password as MD5');
  }

  /** Runs before the driver checks the proof, because the driver ends the connection when the proof is wrong. */
  protected _handleAuthSASLFinal(message: unknown): void {
    this.hasServerProof = true;
    driver._handleAuthSASLFinal.call(this, message);
  }

  /** Data that came together with the refused answer must not open a session. */
  protected _handleReadyForQuery(message: unknown): void {
    if (!this.isRefused) driver._handleReadyForQuery.call(this, message);
  }

  private refuse(what: string): void {
    this.isRefused = true;
    const error = new Error(`What answers as Postgres is none of ours: it ${what}`);
    this.driverConnection().emit('error', error);
    this.driverConnection().stream.destroy(error);
  }

  private driverConnection(): DriverConnection {
    return (this as unknown as { connection: DriverConnection }).connection;
  }
}
