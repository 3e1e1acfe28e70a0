-- +goose Up
-- What OpenPAI's lists show of a job, too; of rows of before it isn't known. Tags have a comma before and behind each.
ALTER TABLE jobs ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN framework_state TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN execution_type TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN roles BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN accountable_retries BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN accountable_retries;
ALTER TABLE jobs DROP COLUMN roles;
ALTER TABLE jobs DROP COLUMN execution_type;
ALTER TABLE jobs DROP COLUMN framework_state;
ALTER TABLE jobs DROP COLUMN tags;
