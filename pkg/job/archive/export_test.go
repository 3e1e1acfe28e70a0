package archive

import "github.com/openpai/paictl/pkg/job/api"

// ListQuery returns the question that a list is to the database.
func ListQuery(q api.JobQuery, sqlite bool) (string, []any, error) { return listQuery(q, sqlite) }
