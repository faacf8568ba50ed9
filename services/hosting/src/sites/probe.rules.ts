/** A site serves when its front page answers with anything but a server error, and its database takes a query. A page may well be a 404. */
export const serves = ({ httpStatus, isSqlOk }: { httpStatus: number; isSqlOk: boolean }): boolean =>
  httpStatus >= 200 && httpStatus < 500 && isSqlOk;
