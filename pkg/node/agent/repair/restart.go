package repair

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// RestartAnnotation is the Node annotation with the request to restart the machine, a Restart as JSON. A later request replaces an earlier request.
	RestartAnnotation = "paictl.openpai.org/restart-order"
	// RestartAnswer is the Node annotation with the result of the request, an Answer as JSON. Only the Node's agent may write it.
	RestartAnswer = "paictl.openpai.org/restart-answer"
)

// Restart is a request to restart a machine.
type Restart struct {
	// ID identifies the request.
	ID string `json:"id"`
	// Boot is the machine's boot ID in the Node's status at the time of the request. The agent restarts the machine only if the current boot ID is still
	// equal to Boot.
	Boot string `json:"boot"`
	// Reason is the reason for the request. By is the user who made the request.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// At is the time of the request. An agent that reads the request hours later doesn't carry it out.
	At time.Time `json:"at"`
}

// ReadRestart returns the request to restart a Node's machine, or nil.
func ReadRestart(n *corev1.Node) (*Restart, error) {
	var out *Restart
	if err := read(n, RestartAnnotation, &out); err != nil || out == nil {
		return nil, err
	}
	if out.ID == "" || len(out.ID) > 64 || out.Boot == "" {
		return nil, fmt.Errorf("the annotation %s of node %s isn't an order with its id and boot", RestartAnnotation, n.Name)
	}
	return out, nil
}

// ReadRestartAnswer returns the answer to a request to restart a Node's machine, or nil.
func ReadRestartAnswer(n *corev1.Node) (*Answer, error) {
	var out *Answer
	err := read(n, RestartAnswer, &out)
	return out, err
}

// WriteRestart writes a request to a Node. WriteRestart fails if the Node has changed since the read.
func WriteRestart(ctx context.Context, client kubernetes.Interface, n *corev1.Node, r Restart) error {
	return write(ctx, client, n, RestartAnnotation, r)
}

// WriteRestartAnswer writes an answer to a Node. WriteRestartAnswer fails if the Node has changed since the read.
func WriteRestartAnswer(ctx context.Context, client kubernetes.Interface, n *corev1.Node, a Answer) error {
	return write(ctx, client, n, RestartAnswer, a)
}
