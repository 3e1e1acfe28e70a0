package notify

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Delivery says whether the owner of a job got the notice before its end.
type Delivery struct {
	// Waits reports whether the notice is still tried, and none was sent.
	Waits bool
	// Sent is when the last one was sent; zero if none was, as to people without an address.
	Sent time.Time
}

// Delivery returns the delivery of the notice of an Action whose grace began at a time. known is false until a round has begun since: before the first one,
// another replica may have sent it.
func (n *Notifier) Delivery(action types.UID, noticed time.Time) (d Delivery, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.deliveries[action], n.deliveries != nil && n.looked.After(noticed)
}

// deliver publishes the deliveries of all notices before the end of a job, in a round that began at a time. Without the record they aren't known.
func (n *Notifier) deliver(all []Notice, looked time.Time) {
	var out map[types.UID]Delivery
	if n.ledger != nil {
		out = map[types.UID]Delivery{}
		for i := range all {
			one := &all[i]
			if one.Before == "" || one.To.Person == "" {
				continue
			}
			d := out[one.Before]
			switch e, known := n.ledger.Entries[one.key()]; {
			case e.Result == ResultSent:
				d.Sent = time.Unix(max(e.Sent, d.Sent.Unix()), 0)
			case !n.ledger.forgets(one) && (!known || e.Result == ResultUnknown):
				d.Waits = true
			}
			out[one.Before] = d
		}
		for action, d := range out {
			d.Waits = d.Waits && d.Sent.IsZero()
			out[action] = d
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deliveries, n.looked = out, looked
}
