package archive

import "github.com/openpai/paictl/pkg/job/api"

// ListQuery returns the SQL query for a list, and its arguments.
func ListQuery(q api.JobQuery, sqlite bool) (string, []any, error) { return listQuery(q, sqlite) }
