package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/agent/gpu"
	"github.com/openpai/paictl/pkg/agent/order"
)

// obey carries out orders that people write on the agent's Node, one after the other, until ctx ends.
func (d *Driver) obey(ctx context.Context, client kubernetes.Interface) {
	nodes := make(chan *corev1.Node, 1)
	tell := func(obj any) {
		n, ok := obj.(*corev1.Node)
		if !ok || n.Name != d.node {
			return
		}
		select { // the latest counts
		case <-nodes:
		default:
		}
		nodes <- n
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, d.node).String()
	}))
	informer := factory.Core().V1().Nodes().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }}); err != nil {
		d.log.ErrorContext(ctx, "orders for GPUs can't be seen", "err", err)
		return
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
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
		if err := d.orders(ctx, client, n); err != nil {
			d.log.WarnContext(ctx, "orders for GPUs: trying again", "err", err)
			again = time.After(5 * time.Second)
		}
	}
}

// orders carries out what a Node orders and isn't answered yet, and answers.
func (d *Driver) orders(ctx context.Context, client kubernetes.Interface, n *corev1.Node) error {
	orders, err := order.Read(n)
	if err != nil {
		d.log.WarnContext(ctx, "orders that can't be read", "err", err)
		return nil
	}
	told, err := order.ReadAnswers(n)
	if err != nil {
		told = nil // someone else has written there
	}
	var answers []order.Answer
	fresh := false
	for _, o := range orders {
		i := slices.IndexFunc(told, func(a order.Answer) bool { return a.ID == o.ID })
		if a, done := d.answered[o.ID]; i < 0 && done { // it couldn't be told, or isn't seen yet
			told, i = append(told, a), len(told)
		}
		if i < 0 {
			a := order.Answer{ID: o.ID, Done: true}
			d.log.InfoContext(ctx, "an order", "gpu", o.GPU, "action", o.Action, "by", o.By)
			if a.Message, err = d.carryOut(ctx, o); err != nil {
				a.Done, a.Message = false, err.Error()
			}
			d.log.InfoContext(ctx, "answered", "gpu", o.GPU, "action", o.Action, "done", a.Done, "message", a.Message)
			a.Message = a.Message[:min(len(a.Message), order.MostMessage)]
			if d.answered == nil || len(d.answered) > mostAnswered {
				d.answered = map[string]order.Answer{}
			}
			d.answered[a.ID] = a
			told, i, fresh = append(told, a), len(told), true
		}
		answers = append(answers, told[i])
		if fresh {
			break // what else there is comes with the Node as it is then
		}
	}
	if !fresh && slices.Equal(answers, told) {
		return nil
	}
	now, err := client.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if fresh { // answers to orders that come later stay
		for _, a := range told {
			if !slices.ContainsFunc(answers, func(b order.Answer) bool { return a.ID == b.ID }) && slices.ContainsFunc(orders, func(o order.Order) bool { return o.ID == a.ID }) {
				answers = append(answers, a)
			}
		}
	}
	return order.Tell(ctx, client, now, answers)
}

// carryOut does what an order says. The text says what came of it.
func (d *Driver) carryOut(ctx context.Context, o order.Order) (string, error) {
	if age := d.gpus.now().Sub(o.At); age > order.Valid || age < -order.Valid {
		return "", fmt.Errorf("the order is of %s, and it is %s on the machine: too old, or the clocks differ", o.At.UTC().Format(time.RFC3339), d.gpus.now().UTC().Format(time.RFC3339))
	}
	g, ok := d.gpus.cardOf(o.GPU)
	if !ok || g.missing {
		return "", fmt.Errorf("the machine has no GPU %d", o.GPU)
	}
	switch o.Action {
	case order.Ignore:
		return d.gpus.ignore(o.GPU, o.Reason)
	case order.Heed:
		return d.gpus.heed(o.GPU)
	case order.Reset:
		return d.reset(ctx, &g)
	}
	return "", fmt.Errorf("the agent of this release knows no order %q", o.Action)
}

// mostAnswered bounds how many answers are remembered: those of a Node are fewer.
const mostAnswered = 1000

// resetting is how long a reset may take.
const resetting = time.Minute

// reset resets a GPU that no pod has.
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
	ctx, cancel := context.WithTimeout(ctx, resetting)
	defer cancel()
	said, err := d.vendor.reset(ctx, g)
	if err == nil {
		d.gpus.wasReset(g.Index)
	}
	return said, err
}
