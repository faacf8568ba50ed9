export const agencyProblems = {
  board_not_found: { status: 404, title: 'No such board', advice: 'GET /v1/agency/boards lists your boards.' },
  card_not_found: {
    status: 404,
    title: 'No such card on this board',
    advice: "List the board's cards, with archived=true those in the archive.",
  },
  board_column_not_found: {
    status: 404,
    title: 'No such column on this board',
    advice: 'The columns of the board list them.',
  },
  board_label_not_found: {
    status: 404,
    title: 'No such label on this board',
    advice: 'The labels of the board list them.',
  },
  // Refusals because of an id in the body that names nothing, or because of the state of the board
  column_not_found: {
    status: 422,
    title: 'No such column on this board',
    advice: "Send a column_id that the board's columns have.",
  },
  label_not_found: {
    status: 422,
    title: 'No such label on this board',
    advice: "Send label_ids that the board's labels have.",
  },
  card_archived: {
    status: 422,
    title: 'The card is in the archive',
    advice: 'Restore the card first; what is archived has no place to be moved to.',
    transient: true,
  },
  board_has_cards: {
    status: 422,
    title: 'There are cards on the board',
    advice: 'Archive its cards first. What is in the archive is deleted with the board.',
    transient: true,
  },
  column_has_cards: {
    status: 422,
    title: 'There are cards in the column',
    advice: 'Move its cards to another column or archive them first.',
    transient: true,
  },
  last_column_needed: {
    status: 422,
    title: 'The archive of the board needs its last column',
    advice: 'Add another column first. Without one the cards in the archive have nowhere to return to.',
    transient: true,
  },
  board_full: {
    status: 422,
    title: 'The board has as many columns or labels as it may',
    advice: 'A board holds up to 200 columns and 200 labels. Make another board.',
    transient: true,
  },
} as const;
