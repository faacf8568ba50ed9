import pg from 'pg';

/** The parts of the driver's connection that ScramClient uses. */
interface DriverConnection {
  stream: { destroy(error: Error): void };
  emit(event: 'error', error: Error): void;
  once(event: 'authenticationOk', listener: () => void): void;
}

/** A method of the driver that ScramClient replaces. A test checks that the driver still calls these methods. */
type Handler = (this: pg.Client, message: unknown) => void;
const driver = pg.Client.prototype as unknown as Record<'_handleAuthSASLFinal' | '_handleReadyForQuery', Handler>;

/**
 * A client that proves its password without sending it. While a server is down, another program may take its port. So
 * the client refuses a server that requests the password in clear text or as MD5, and a server that does not prove that
 * it knows the password's verifier.
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

  /**
   * Records that the server sent a proof, and then lets the driver check it. The driver ends the connection if the
   * proof is wrong.
   */
  protected _handleAuthSASLFinal(message: unknown): void {
    this.hasServerProof = true;
    driver._handleAuthSASLFinal.call(this, message);
  }

  /**
   * Ignores ReadyForQuery after the client has refused the server. The message may have come in the same packet as the
   * refused one, and must not open the session.
   */
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
