// Package listing makes lists of jobs. It contains the rows and states of jobs, the filter, order and cursor of a list, an index that keeps the jobs
// of a cluster ready for lists, and the merge of live jobs with the history.
// In: Frameworks and pods as they change, an archive. Out: pages, whose cost depends only on their number of rows.
package listing

import "errors"

// ErrUnavailable is wrapped by errors for lists that the server can't return now.
var ErrUnavailable = errors.New("not now")
