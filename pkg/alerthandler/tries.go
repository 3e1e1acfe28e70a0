package alerthandler

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// lastRetry is the maximum time before the handler repeats an effect that the API server has rejected.
const lastRetry = time.Minute

// tries holds the rejected effects, by the UIDs of their Actions. Only the goroutine that leads uses it.
type tries map[types.UID]try

// try describes the failed tries of an effect: when the API server first rejected the effect, how often it has done so, and the last reason.
type try struct {
	since   time.Time
	refused int
	next    time.Time
	why     string
}

// note records the result of a try. An API server that can't be reached hasn't rejected the effect, so such an error removes the record.
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
