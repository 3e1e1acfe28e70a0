// Package order is how people tell the agent of a machine what to do about a GPU, and how it answers.
// In: a Node, an order for one of its GPUs. Out: annotations of the Node, one that people write and one that the agent writes.
package order

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const (
	// Annotation of a Node are the orders for its GPUs, a list of Order as JSON. Who may write on a Node may give them.
	Annotation = "paictl.openpai.org/gpu-orders"
	// Answers are what came of them, a list of Answer as JSON. Only the Node's agent may write it.
	Answers = "paictl.openpai.org/gpu-answers"
)

// Action is what to do about a GPU.
type Action string

// Actions.
const (
	// Reset resets it, which ends what is wrong with it where that can be ended so. No pod may have it.
	Reset Action = "reset"
	// Ignore takes what is wrong with it now for nothing: it gets jobs again. Anything else makes it sick again.
	Ignore Action = "ignore"
	// Heed ends Ignore.
	Heed Action = "heed"
)

// Order is for one GPU of a machine. There is one for each at most: a later one takes the place of an earlier one.
type Order struct {
	// ID tells orders apart.
	ID     string `json:"id"`
	GPU    int32  `json:"gpu"`
	Action Action `json:"action"`
	// Reason is what is to be ignored; "" is whatever is wrong when the order is carried out.
	Reason string `json:"reason,omitempty"`
	// At is when it was given: an agent that comes hours later does nothing.
	At time.Time `json:"at"`
	// By is who gave it.
	By string `json:"by,omitempty"`
}

// Answer is what came of an order.
type Answer struct {
	ID string `json:"id"`
	// Done reports whether it was carried out; Message says what that was, or why not.
	Done    bool   `json:"done"`
	Message string `json:"message"`
}

// Valid is for how long an order may be carried out: clocks of machines differ by less.
const Valid = 15 * time.Minute

const (
	// mostOrders is more than any machine has GPUs that break at once; with MostMessage it keeps answers below mostText.
	mostOrders = 64
	// MostMessage is how long an answer's message may be, in bytes.
	MostMessage = 500
)

// mostText bounds what is read: a Node's annotations are written by many.
const mostText = 64 << 10

// Read returns the orders on a Node. Several for the same GPU are an error, as are values that no one gives.
func Read(n *corev1.Node) ([]Order, error) {
	var out []Order
	if err := read(n, Annotation, &out); err != nil {
		return nil, err
	}
	if len(out) > mostOrders {
		return nil, fmt.Errorf("the annotation %s of node %s has more than %d orders", Annotation, n.Name, mostOrders)
	}
	seen := map[int32]bool{}
	for _, o := range out {
		if o.ID == "" || len(o.ID) > 64 || o.GPU < 0 || seen[o.GPU] {
			return nil, fmt.Errorf("the annotation %s of node %s isn't a list of orders, one for each GPU at most", Annotation, n.Name)
		}
		seen[o.GPU] = true
	}
	return out, nil
}

// ReadAnswers returns what came of orders.
func ReadAnswers(n *corev1.Node) (out []Answer, err error) { return out, read(n, Answers, &out) }

func read(n *corev1.Node, annotation string, to any) error {
	text := n.Annotations[annotation]
	if text == "" {
		return nil
	}
	if len(text) > mostText {
		return fmt.Errorf("the annotation %s of node %s is too long", annotation, n.Name)
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("the annotation %s of node %s: %w", annotation, n.Name, err)
	}
	return nil
}

// Give writes an order on a Node, and takes those away that are no longer valid.
func Give(ctx context.Context, client kubernetes.Interface, node string, o Order) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		orders, err := Read(n)
		if err != nil {
			orders = nil // no agent reads it
		}
		orders = slices.DeleteFunc(orders, func(old Order) bool { return old.GPU == o.GPU || o.At.Sub(old.At) > Valid })
		return write(ctx, client, n, Annotation, append(orders, o))
	})
}

// Tell writes answers on a Node.
func Tell(ctx context.Context, client kubernetes.Interface, n *corev1.Node, answers []Answer) error {
	return write(ctx, client, n, Answers, answers)
}

// write replaces an annotation, unless the Node has changed since it was read.
func write(ctx context.Context, client kubernetes.Interface, n *corev1.Node, annotation string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": n.ResourceVersion, "annotations": map[string]string{annotation: string(text)},
	}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
