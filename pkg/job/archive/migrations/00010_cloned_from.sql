-- +goose Up
-- The job that a job was cloned from, as JSON; empty if it wasn't cloned, and for jobs of earlier versions.
ALTER TABLE jobs ADD COLUMN cloned_from TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE jobs DROP COLUMN cloned_from;
