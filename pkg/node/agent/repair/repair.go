// Package repair defines how people request the repair of a GPU or the restart of a machine, and how the machine's agent answers. In: a Node, and a
// request for the machine or a GPU. Out: annotations of the Node. People write the requests, and the agent writes the answers.
package repair

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
	// Annotation is the Node annotation with the requests for the Node's GPUs, as a JSON list of Request. Every user who may write to the Node can add
	// requests.
	Annotation = "paictl.openpai.org/gpu-orders"
	// Answers is the Node annotation with the results of the requests, as a JSON list of Answer. Only the Node's agent may write it.
	Answers = "paictl.openpai.org/gpu-answers"
)

// Action is the requested operation.
type Action string

// These are the actions of a request.
const (
	// Reset resets the GPU, which clears some faults. The GPU must not be allocated to a pod.
	Reset Action = "reset"
	// Ignore makes the agent ignore the GPU's current fault, so that the GPU is allocated to jobs again. Another fault makes the GPU sick again.
	Ignore Action = "ignore"
	// Heed cancels Ignore, so that a GPU with a fault isn't allocated to jobs.
	Heed Action = "heed"
)

// Request is a request for a GPU of a machine. Each GPU has at most one request, because a later request replaces an earlier request.
type Request struct {
	// ID identifies the request.
	ID     string `json:"id"`
	GPU    int32  `json:"gpu"`
	Action Action `json:"action"`
	// Reason is the fault to ignore. If Reason is "", the agent ignores the GPU's fault at the time of execution.
	Reason string `json:"reason,omitempty"`
	// At is the time of the request. An agent that starts hours later ignores the request.
	At time.Time `json:"at"`
	// By is the user who made the request.
	By string `json:"by,omitempty"`
}

// Answer is the agent's answer to a request.
type Answer struct {
	ID string `json:"id"`
	// Done reports whether the request was carried out. Message is the result, or the reason of a failure.
	Done    bool   `json:"done"`
	Message string `json:"message"`
}

// Valid is how long a request is valid. Valid is longer than the clock differences between machines.
const Valid = 15 * time.Minute

const (
	// mostRequests limits the number of requests. Far fewer GPUs of a machine fail at the same time. Together with MostMessage, this limit keeps the
	// answers shorter than mostText.
	mostRequests = 64
	// MostMessage is the maximum length of an answer's message in bytes.
	MostMessage = 500
)

// mostText limits the size of an annotation, because many programs write annotations of a Node.
const mostText = 64 << 10

// Read returns the requests on a Node. Read returns an error for invalid values, and for several requests for the same GPU.
func Read(n *corev1.Node) ([]Request, error) {
	var out []Request
	if err := read(n, Annotation, &out); err != nil {
		return nil, err
	}
	if len(out) > mostRequests {
		return nil, fmt.Errorf("the annotation %s of node %s has more than %d orders", Annotation, n.Name, mostRequests)
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

// ReadAnswers returns the answers on a Node.
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

// Add adds a request to a Node, and removes expired requests.
func Add(ctx context.Context, client kubernetes.Interface, node string, o Request) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		orders, err := Read(n)
		if err != nil {
			orders = nil // invalid requests, which no agent carries out
		}
		orders = slices.DeleteFunc(orders, func(old Request) bool { return old.GPU == o.GPU || o.At.Sub(old.At) > Valid })
		return write(ctx, client, n, Annotation, append(orders, o))
	})
}

// WriteAnswers replaces the answers on a Node. WriteAnswers fails if the Node has changed since the read.
func WriteAnswers(ctx context.Context, client kubernetes.Interface, n *corev1.Node, answers []Answer) error {
	return write(ctx, client, n, Answers, answers)
}

// write replaces an annotation of a Node. write fails if the Node has changed since the read.
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
