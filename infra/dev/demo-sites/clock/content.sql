-- The application keeps nothing.
SELECT 1;
