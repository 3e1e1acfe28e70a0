// Package listing makes lists of jobs: their rows and states, the filter, order and cursor of a list, an index that keeps the jobs of a
// cluster ready for it, and the merge of these with the history.
// In: Frameworks and pods as they change, an archive. Out: pages, whose cost depends on their rows.
package listing

import "errors"

// ErrUnavailable is wrapped by errors that mean that the server can't return a list now.
var ErrUnavailable = errors.New("not now")
