CREATE TABLE IF NOT EXISTS readings (
  id int PRIMARY KEY,
  taken_on date NOT NULL,
  high_cm int NOT NULL,
  low_cm int NOT NULL
);
INSERT INTO readings VALUES
  (1, '2026-03-01', 212, 34),
  (2, '2026-03-02', 219, 29),
  (3, '2026-03-03', 224, 25)
ON CONFLICT DO NOTHING;
