package notify

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Delivery describes the delivery of the notice that announces the end of a job to the owner.
type Delivery struct {
	// Waits reports whether no message with the notice was sent. Waits stays true if the notice is lost.
	Waits bool
	// Sent is the time of the first message with the notice. It is zero if no message was sent, or if the notice has no receiver, such as a person
	// without an address.
	Sent time.Time
}

// mostRefused is the number of rejections of a receiver's address after which Actions stop waiting for the notice. People choose their own addresses,
// and must not block Actions with invalid addresses.
const mostRefused = 3

// Delivery returns the delivery of the notice about an Action in its grace period. known is false until a round has handled the Action, because
// another replica may have sent the notice.
func (n *Notifier) Delivery(action types.UID) (d Delivery, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, known = n.deliveries[action]
	return d, known
}

// deliver publishes the deliveries of all notices that announce the end of a job. If the record of sent notices isn't loaded, deliver publishes
// nothing.
func (n *Notifier) deliver(w *World, all []Notice) {
	out := map[types.UID]Delivery{}
	if n.ledger != nil {
		for _, a := range w.Actions {
			if a.Status.Phase == v1.PhaseNoticed {
				out[a.UID] = Delivery{}
			}
		}
		for i := range all {
			if one := &all[i]; one.Before != "" && one.To.Person != "" {
				out[one.Before] = out[one.Before].with(n.ledger, one, n.refusals[one.key()])
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deliveries = out
}

// with returns the delivery after the delivery to another receiver is added.
func (d Delivery) with(l *Ledger, one *Notice, refusals int) Delivery {
	e := l.Entries[one.key()]
	switch at := time.Unix(e.Sent, 0); {
	case e.Result == ResultSent:
		if d.Waits = false; d.Sent.IsZero() || at.Before(d.Sent) {
			d.Sent = at
		}
	case !d.Sent.IsZero(), e.Result == ResultSkipped:
	case one.To.OwnWebhook: // its owner chooses whether the webhook works
	case e.Result == ResultLost:
		d.Waits = true
	case one.At.Unix() < l.Began: // notices were switched on later
	case refusals >= mostRefused:
	default:
		d.Waits = true
	}
	return d
}
