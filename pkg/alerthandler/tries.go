package alerthandler

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// lastRetry is the longest time before the handler repeats an effect that the API server has rejected.
const lastRetry = time.Minute

// tries are the effects that the API server has rejected, by the UIDs of their Actions. They belong to the goroutine that leads.
type tries map[types.UID]try

// try describes the failed tries of an effect: when the API server first rejected it, how often, and the last reason.
type try struct {
	since   time.Time
	refused int
	next    time.Time
	why     string
}

// note records the result of an effect. An API server that can't be reached hasn't rejected the effect.
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
