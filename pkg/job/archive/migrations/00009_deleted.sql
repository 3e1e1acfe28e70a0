-- +goose Up
-- 1 if someone deleted the job, 0 if its time in Kubernetes ended, or if that isn't known.
ALTER TABLE jobs ADD COLUMN deleted BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN deleted;
