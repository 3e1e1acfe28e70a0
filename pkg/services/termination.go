package services

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// pollTermination is the interval between checks for remaining pods.
const pollTermination = 500 * time.Millisecond

// awaitTermination waits until no pods of the release exist. Pods on machines that don't respond can't stop until the machine responds.
// awaitTermination reports such pods without waiting for their end.
func (r *run) awaitTermination(ctx context.Context, t *target) error {
	if r.o.Wait <= 0 {
		return nil
	}
	all, err := workloads(t.release.Manifest, t.namespace)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, r.o.Wait)
	defer cancel()
	tick := time.NewTicker(pollTermination)
	defer tick.Stop()
	var left []corev1.Pod // as of the last response
	told, began := "", r.Clock()
	for {
		now, err := r.podsOf(limit, all)
		switch {
		case err != nil && limit.Err() == nil:
			return err
		case err == nil:
			left = now
			if r.onlyAway(limit, t.name, left) {
				return nil
			}
			if r.Clock().Sub(began) > collectorPatience {
				if err := r.removeUnowned(limit, t.name, left); err != nil {
					return err
				}
			}
			if text := "waits for " + plural.Of(len(left), "pod") + " to end"; text != told {
				told = text
				r.emit(Event{Kind: EventProgress, Service: t.name, Message: text})
			}
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return hint.Errorf("look at them with: kubectl -n "+t.namespace+" describe pod",
				"pods of %s are still there after %s: %s", t.name, r.o.Wait, strings.Join(podNames(left), ", "))
		}
	}
}

// onlyAway reports whether all remaining pods are on machines that don't respond. onlyAway then emits a warning with the names of the machines.
func (r *run) onlyAway(ctx context.Context, service string, left []corev1.Pod) bool {
	nodes := sets.New[string]()
	for i := range left {
		if !r.overdue(&left[i]) {
			return false
		}
		nodes.Insert(left[i].Spec.NodeName)
	}
	if slices.ContainsFunc(sets.List(nodes), func(name string) bool { return !r.away(ctx, name) }) {
		return false
	}
	if len(left) > 0 {
		r.warn(fmt.Sprintf("%s of %s can't be stopped, because their machines don't answer: %s", plural.Of(len(left), "pod"), service, strings.Join(sets.List(nodes), ", ")),
			"it stops when the machine is back")
	}
	return true
}

// overdue reports whether the grace period of a deleted pod has ended. DeletionTimestamp is the end of the grace period.
func (r *run) overdue(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && p.Spec.NodeName != "" && r.Clock().After(p.DeletionTimestamp.Time)
}

// away reports whether a node's kubelet doesn't respond. away returns false if the node can't be read. The wait ends anyway because of its time
// limit.
func (r *run) away(ctx context.Context, name string) bool {
	node, err := r.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

func (r *run) podsOf(ctx context.Context, all []workload) ([]corev1.Pod, error) {
	var found []corev1.Pod
	for _, w := range all {
		list, err := r.Client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: w.selector.String()})
		if err != nil {
			return nil, fmt.Errorf("list the pods of %s: %w", w.name, err)
		}
		found = append(found, list.Items...)
	}
	return found, nil
}

func podNames(pods []corev1.Pod) []string {
	names := sets.New[string]()
	for i := range pods {
		names.Insert(pods[i].Name)
	}
	return sets.List(names)
}
