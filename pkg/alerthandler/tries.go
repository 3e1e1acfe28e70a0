package alerthandler

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const lastRetry = time.Minute

// tries holds the rejected effects by the UID of the Action. Only the leader's goroutine uses it.
type tries map[types.UID]try

// try describes an effect that the API server has rejected: the time of the first rejection, the number of rejections, and the last reason.
type try struct {
	since   time.Time
	refused int
	next    time.Time
	why     string
}

// note records the result of a try. If the API server can't be reached, note removes the record, because the effect wasn't rejected.
func (t tries) note(uid types.UID, err error, now time.Time) {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	one := t[uid]
	if one.why == "" {
		one.since = now
	}
	switch {
	case errors.Is(err, errMoved): // the next decision is about the target as it is now
		one.why = trimmed(err.Error())
		t[uid] = one
	case answered:
		one.refused++
		one.why, one.next = trimmed(err.Error()), now.Add(min(retry<<min(one.refused-1, 8), lastRetry))
		t[uid] = one
	default:
		delete(t, uid)
	}
}
