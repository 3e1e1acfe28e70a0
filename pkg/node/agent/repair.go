package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// watchRequests carries out the requests on the agent's Node, one after the other, until ctx ends.
func (d *Driver) watchRequests(ctx context.Context, client kubernetes.Interface) {
	nodes := make(chan *corev1.Node, 1)
	own := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, d.node).String()}
	store := watch.New(watch.Options[*corev1.Node, *corev1.Node]{
		Name: "nodes", Source: watch.From(client.CoreV1().Nodes(), own), Log: d.log,
		Keep: func(n *corev1.Node) (*corev1.Node, error) { return n, nil },
		Changed: func(changes []watch.Change[*corev1.Node], _ string) {
			for _, c := range changes {
				if c.Key != d.node || c.Is == nil {
					continue
				}
				select { // only the latest matters
				case <-nodes:
				default:
				}
				nodes <- c.Is.Value
			}
		},
	})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { store.Run(ctx) })
	var again <-chan time.Time
	var n *corev1.Node
	for {
		select {
		case <-ctx.Done():
			return
		case n = <-nodes:
		case <-again:
		}
		again = nil
		after, err := d.answerRestart(ctx, client, n)
		if err = errors.Join(d.answerRequests(ctx, client, n), err); err != nil {
			d.log.WarnContext(ctx, "orders on the Node: retrying", "err", err)
			after = 5 * time.Second
		}
		if after > 0 {
			again = time.After(after)
		}
	}
}

// answerRequests carries out the next unanswered request on a Node, and writes the answers.
func (d *Driver) answerRequests(ctx context.Context, client kubernetes.Interface, n *corev1.Node) error {
	orders, err := repair.Read(n)
	if err != nil {
		d.log.WarnContext(ctx, "orders that can't be read", "err", err)
		return nil
	}
	known := d.answers(orders, n)
	for _, o := range orders {
		if !slices.ContainsFunc(known, func(a repair.Answer) bool { return a.ID == o.ID }) {
			known = append(known, d.follow(ctx, o))
			break // the Node is read again for the other orders
		}
	}
	if told, err := repair.ReadAnswers(n); err == nil && slices.Equal(known, told) {
		return nil
	}
	// Further requests and answers may have arrived after the Node was read.
	now, err := client.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if orders, err = repair.Read(now); err != nil {
		return nil //nolint:nilerr // the next event of the Node reports it
	}
	answers := d.answers(orders, now)
	if told, err := repair.ReadAnswers(now); err == nil && slices.Equal(answers, told) {
		return nil
	}
	return repair.WriteAnswers(ctx, client, now, answers)
}

// answers returns the known answers to a Node's requests. The answers come from the Node's annotation or from the ledger.
func (d *Driver) answers(orders []repair.Request, n *corev1.Node) (out []repair.Answer) {
	told, err := repair.ReadAnswers(n)
	if err != nil {
		told = nil // another program wrote the annotation
	}
	for _, o := range orders {
		if i := slices.IndexFunc(told, func(a repair.Answer) bool { return a.ID == o.ID }); i >= 0 {
			out = append(out, told[i])
		} else if a, ok := d.ledger.answer(o.ID); ok { // the answer couldn't be written to the Node, or isn't visible yet
			out = append(out, a)
		}
	}
	return out
}

// follow carries out a request. follow records the request before and after.
func (d *Driver) follow(ctx context.Context, o repair.Request) repair.Answer {
	a := repair.Answer{ID: o.ID, Done: true}
	d.log.InfoContext(ctx, "an order", "gpu", o.GPU, "action", o.Action, "by", o.By)
	err := d.ledger.begin(entry{ID: o.ID})
	if err != nil {
		err = fmt.Errorf("it was not done, because the agent can't record its start: %w", err)
	} else {
		a.Message, err = d.carryOut(ctx, o)
	}
	if err != nil {
		a.Done, a.Message = false, err.Error()
	}
	d.log.InfoContext(ctx, "answered", "gpu", o.GPU, "action", o.Action, "done", a.Done, "message", a.Message)
	a.Message = a.Message[:min(len(a.Message), repair.MostMessage)]
	if err := d.ledger.end(a); err != nil {
		d.log.ErrorContext(ctx, "the result of an order can't be stored", "err", err)
	}
	return a
}

func (d *Driver) carryOut(ctx context.Context, o repair.Request) (string, error) {
	if age := d.gpus.now().Sub(o.At); age > repair.Valid || age < -repair.Valid {
		return "", fmt.Errorf("the order is from %s, but on the machine it is %s: too old, or the clocks differ", o.At.UTC().Format(time.RFC3339), d.gpus.now().UTC().Format(time.RFC3339))
	}
	g, ok := d.gpus.cardOf(o.GPU)
	if !ok || g.missing {
		return "", fmt.Errorf("the machine has no GPU %d", o.GPU)
	}
	switch o.Action {
	case repair.Ignore:
		return d.gpus.ignore(o.GPU, o.Reason)
	case repair.Heed:
		return d.gpus.heed(o.GPU)
	case repair.Reset:
		return d.reset(ctx, &g)
	}
	return "", fmt.Errorf("the agent of this release doesn't support the order %q", o.Action)
}

const (
	// resetting is the time limit of a reset.
	resetting = time.Minute
	// checking is how long the agent waits for reports after a reset. A reset stops the program that reads the GPUs.
	checking = firstLook + silence
)

// reset resets a GPU that isn't allocated to a pod, and then checks the GPU.
func (d *Driver) reset(ctx context.Context, g *device) (string, error) {
	switch {
	case g.Lost:
		return "", errors.New("it doesn't answer: only a restart of the machine helps")
	case gpu.FindXID(g.sticky).Action == gpu.Restart:
		return "", fmt.Errorf("%s", gpu.FindXID(g.sticky))
	}
	if err := d.records.hold(g.card); err != nil {
		return "", err
	}
	defer d.records.release(g.card)
	bounded, cancel := context.WithTimeout(ctx, resetting)
	defer cancel()
	said, err := d.vendor.reset(bounded, g)
	if err != nil {
		return said, err
	}
	d.gpus.wasReset(g.Index)
	if err := d.gpus.measured(ctx, checking); err != nil {
		return "", fmt.Errorf("it was reset, but isn't checked: %w", err)
	}
	if fault := d.gpus.left(g.Index); fault != "" {
		return "", fmt.Errorf("it was reset, but still has a fault: %s", fault)
	}
	return said, nil
}
