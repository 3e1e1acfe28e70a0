package protocol

import (
	"bytes"
	_ "embed" // the schema
)

//go:embed job.schema.json
var schema []byte

// Schema returns the JSON schema (draft 2020-12) of job files, which editors can use. The schema describes only the structure of the file. Parse
// also checks that names exist.
func Schema() []byte { return bytes.Clone(schema) }
