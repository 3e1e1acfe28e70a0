package controller

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// ruleBook holds the current failure rules. A new set of rules replaces the whole old set.
type ruleBook struct {
	set     atomic.Pointer[rules.Set]
	metrics *metrics
}

func newRuleBook(m *metrics) *ruleBook {
	b := &ruleBook{metrics: m}
	b.use(rules.Builtin())
	return b
}

func (b *ruleBook) use(s *rules.Set) {
	b.set.Store(s)
	b.metrics.rulesGood.Set(1)
}

// Failed returns the outcome of a failed pod.
func (b *ruleBook) Failed(p *corev1.Pod) machine.Outcome {
	in := rules.Pod{Reason: p.Status.Reason, Message: p.Status.Message}
	for _, cs := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range cs {
			if t := c.State.Terminated; t != nil {
				in.Containers = append(in.Containers, rules.Container{
					Name: c.Name, Reason: t.Reason, Message: t.Message, Code: int(t.ExitCode), Finished: t.FinishedAt.Unix(),
				})
			}
		}
	}
	m := b.set.Load().ClassifyPod(in)
	o := outcomeOf(m.Rule)
	o.Code = int32(m.Code)
	return o
}

// Code returns the outcome for an exit code.
func (b *ruleBook) Code(code int32) machine.Outcome {
	o := outcomeOf(b.set.Load().ByCode(int(code)))
	o.Code = code
	return o
}

func outcomeOf(r rules.Rule) machine.Outcome {
	o := machine.Outcome{Code: int32(r.Code), Phrase: r.Phrase, Reason: r.Reason, NodeFault: nodeFault(r)}
	for _, a := range r.Attributes() {
		o.Attributes = append(o.Attributes, v1.CompletionTypeAttribute(a))
	}
	return o
}

// nodeFault reports whether a rule says that the machine caused the failure. The eviction of a pod in favor of another pod doesn't count.
func nodeFault(r rules.Rule) bool {
	if r.Type != "PLATFORM_FAILURE" || r.Code == -1003 {
		return false
	}
	switch r.Causer {
	case "PAI_HW", "PAI_OS", "PAI_DOCKER", "PAI_K8S":
		return true
	}
	return false
}
