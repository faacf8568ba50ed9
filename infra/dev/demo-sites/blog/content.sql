CREATE TABLE IF NOT EXISTS posts (
  id int PRIMARY KEY,
  title text NOT NULL,
  body text NOT NULL,
  author text NOT NULL,
  published_at timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS comments (
  id int PRIMARY KEY,
  post_id int NOT NULL REFERENCES posts ON DELETE CASCADE,
  author text NOT NULL,
  body text NOT NULL
);
INSERT INTO posts VALUES
  (1, 'The crane is back', 'After nine weeks the big crane turns again. Half the town came to see it lift a tugboat.', 'Mette', '2026-01-18 08:00Z'),
  (2, 'Fog, day three', 'Nothing moves. The pilots play cards, and the gulls walk.', 'Mette', '2026-02-07 07:30Z'),
  (3, 'How to tell a good knot', 'It holds, and it comes undone when you want it to. Everything else is decoration.', 'Oskar', '2026-03-01 19:15Z')
ON CONFLICT DO NOTHING;
INSERT INTO comments VALUES
  (1, 1, 'Jonas', 'I have the whole lift on film.'),
  (2, 3, 'Ane', 'My grandfather would have signed that.')
ON CONFLICT DO NOTHING;
