-- +goose Up
-- Who sent code first; it counts for the limit of that user.
ALTER TABLE code ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE code DROP COLUMN owner;
