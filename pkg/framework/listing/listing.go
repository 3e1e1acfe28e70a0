// Package listing is lists of jobs: their rows and states, the filter, order and cursor of a list, an index that keeps the jobs of
// a cluster ready for it, and how these are put together with the history.
// In: Frameworks and pods as they change, an archive. Out: pages, which cost what they show.
package listing

import "errors"

// ErrUnavailable is wrapped by what says that a list can't be had now from who was asked.
var ErrUnavailable = errors.New("not now")
