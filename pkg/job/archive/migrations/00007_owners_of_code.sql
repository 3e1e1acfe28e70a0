-- +goose Up
-- Who has sent code, and so has it: a checksum alone is no secret.
CREATE TABLE code_owners (
    sha256 TEXT NOT NULL,
    owner  TEXT NOT NULL,
    PRIMARY KEY (sha256, owner)
);
INSERT INTO code_owners (sha256, owner) SELECT sha256, owner FROM code WHERE complete AND owner <> '';

-- +goose Down
DROP TABLE code_owners;
