package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// volumes reads which machines have the storages of pods, and returns selectors of machines by claim. It leaves out storages that all machines have
// and storages that the user may not read.
func (c *Client) volumes(ctx context.Context, pods []corev1.Pod) (map[string]*corev1.NodeSelector, error) {
	claims := map[string]bool{}
	for i := range pods {
		for _, name := range claimsOf(&pods[i]) {
			claims[name] = pods[i].Spec.NodeName == "" || claims[name]
		}
	}
	out := map[string]*corev1.NodeSelector{}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if !claims[name] {
			continue
		}
		claim, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && claim.Spec.VolumeName != "" {
			var volume *corev1.PersistentVolume
			volume, err = c.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
			if err == nil && volume.Spec.NodeAffinity != nil && volume.Spec.NodeAffinity.Required != nil {
				out[name] = volume.Spec.NodeAffinity.Required
			}
		}
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the location of the storage %s: %w", name, err)
		}
	}
	return out, nil
}

func claimsOf(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.Volumes {
		if claim := p.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			out = append(out, claim.ClaimName)
		}
	}
	return out
}

// kept explains why a gang doesn't start although cells are free on some machines: its pods can't run there, because of storages, taints or
// processors, which the GPU scheduler doesn't consider. The text is empty if all pods can run there.
func (e *evidence) kept(x *cell.Explanation) (text, remedy string) {
	nodes, free, pods := x.Nodes, freeCells(x), e.unplacedRoles()
	for _, p := range pods {
		if why, remedy := e.barred([]*corev1.Pod{p}, nodes); why != "" {
			return sentenceEnd(fmt.Sprintf("%s, but %s can't go there: %s", free, e.nameOf(p), why)), remedy
		}
	}
	for _, node := range nodes {
		if why, remedy := e.barred(pods, []string{node}); why != "" {
			return sentenceEnd(fmt.Sprintf("%s, but its pods can't go to %s: %s", free, node, why)), remedy
		}
	}
	return "", ""
}

// freeCells describes which cells are free for a gang, and on which machines.
func freeCells(x *cell.Explanation) string {
	text := "GPUs for it are free"
	if x.CPUCells > 0 {
		text = "CPU cells for it are free"
	}
	if len(x.Nodes) > 0 {
		text += " on " + some(x.Nodes)
	}
	return text
}

// keptFrom explains why a gang can't use the cells that are free for it.
func (e *evidence) keptFrom(w *Why) {
	var text, remedy string
	for _, x := range []*cell.Explanation{e.gang.Explanation, e.gang.Alternative} {
		if x == nil || x.Code != cell.Ready {
			continue
		}
		why, what := e.kept(x)
		if why == "" {
			e.unschedulable(w, x)
			return
		}
		if text == "" {
			text, remedy = why, what
		}
	}
	if text != "" {
		w.Sentence, w.Remedy = text, []string{remedy}
	}
}

// unschedulable adds Kubernetes' reason for not using machines with free cells.
func (e *evidence) unschedulable(w *Why, x *cell.Explanation) {
	p, said := e.kubernetesSays()
	if said == "" {
		return
	}
	w.Sentence = fmt.Sprintf("%s, but Kubernetes found no machine for %s: %s", freeCells(x), e.nameOf(p), sentence(said))
	w.Remedy = remedyUnschedulable(said)
}

// cellsOn names the kinds of cells that the gang may take on the machines that may accepts. It returns "" if these machines have no such cells.
func (e *evidence) cellsOn(may func(*corev1.Node) bool) string {
	takesCPU := e.gang != nil && e.gang.Asks.CPUCells > 0
	takesGPUs := !takesCPU || e.gang.Asks.OrShareOfGPUs > 0
	cpu, gpus := e.cells == nil, e.cells == nil // assume both kinds if they aren't known
	for name, n := range e.nodes {
		if has, ok := e.cells[name]; ok && may(n) {
			cpu, gpus = cpu || has == onCPUs, gpus || has == onGPUs
		}
	}
	switch {
	case takesCPU && cpu && takesGPUs && gpus:
		return "CPU cells or GPUs"
	case takesCPU && cpu:
		return "CPU cells"
	case takesGPUs && gpus:
		return "GPUs"
	}
	return ""
}

// kind is the kind of a machine's cells.
type kind int

const (
	onGPUs kind = iota
	onCPUs
)

// readCells reads the kind of each machine's cells, if the explanation needs it. It returns nil if the kinds aren't known or needed.
func (c *Client) readCells(ctx context.Context, e *evidence) map[string]kind {
	if e.gang == nil || e.gang.Explanation == nil || len(e.volumes)+len(e.AvoidedNodes) == 0 {
		return nil
	}
	nodes, err := c.Scheduler.Nodes(ctx)
	if err != nil {
		return nil
	}
	out := map[string]kind{}
	for i := range nodes.Items {
		if out[nodes.Items[i].Name] = onGPUs; len(nodes.Items[i].Configured) == 0 {
			out[nodes.Items[i].Name] = onCPUs
		}
	}
	return out
}

// storageRemedy returns the advice for a pod whose storage isn't on the machines with free cells.
func (e *evidence) storageRemedy(s *corev1.NodeSelector) string {
	const without = " it doesn't use that storage: extras.storages of the job file"
	on := func(n *corev1.Node) bool { return selects(s, n) }
	there := false
	for _, n := range e.nodes {
		there = there || on(n)
	}
	cells := e.cellsOn(on)
	switch {
	case !there:
		return "it starts when a machine with that storage is back, or if" + without
	case cells != "":
		return "it starts when enough " + cells + " are free there (paictl job queue), or if" + without
	case e.gang != nil && e.gang.Asks.CPUCells > 0:
		return "the machines there have no CPU cells, and it takes no other cells: submit it again with the GPUs of such a machine as skuType, or so that" + without
	}
	return "the machines there have no GPUs for jobs: submit it again so that" + without
}

// pinned adds facts about the machines that the pods can run on.
func (e *evidence) pinned(w *Why) {
	for _, claim := range slices.Sorted(maps.Keys(e.volumes)) {
		w.fact("storage", claim+" "+e.storedOn(claim))
	}
	if _, said := e.kubernetesSays(); said != "" && !strings.Contains(w.Sentence, strings.TrimRight(said, ".")) {
		w.fact("Kubernetes says", said)
	}
}

// kubernetesSays returns a pod that Kubernetes' scheduler found no machine for, and the reason. It leaves out messages that only repeat the message
// of the GPU scheduler.
func (e *evidence) kubernetesSays() (*corev1.Pod, string) {
	for i := range e.pods {
		p := &e.pods[i]
		if p.Spec.NodeName != "" {
			continue
		}
		said := unschedulable(p)
		for k := range e.events {
			ev := &e.events[k]
			if said == "" && ev.Reason == "FailedScheduling" && saysOf(ev, p) && e.now.Sub(ev.Time) < troubleAge {
				said = clip(withoutPreemption(ev.Message))
			}
		}
		if said != "" && !e.repeats(p, said) {
			return p, said
		}
	}
	return nil, ""
}

// repeats reports whether Kubernetes' message contains the message of the GPU scheduler.
func (e *evidence) repeats(p *corev1.Pod, said string) bool {
	if e.gang == nil {
		return false
	}
	for _, known := range e.gang.Pods {
		reason := strings.TrimRight(clip(known.Reason), ".")
		if known.UID == string(p.UID) && reason != "" && strings.Contains(said, reason[:min(len(reason), len(said), 100)]) {
			return true
		}
	}
	return false
}

// unplacedRoles returns one pod without a machine for each role. One pod is enough because all pods of a role have the same constraints.
func (e *evidence) unplacedRoles() []*corev1.Pod {
	var out []*corev1.Pod
	seen := map[string]bool{}
	for i := range e.pods {
		if p := &e.pods[i]; p.Spec.NodeName == "" && !seen[p.Labels[v1.LabelTaskRole]] {
			seen[p.Labels[v1.LabelTaskRole]] = true
			out = append(out, p)
		}
	}
	return out
}

// barred explains why none of the pods can run on any of the machines. It returns "" if at least one pod can run on at least one machine, or if a
// machine can't be read.
func (e *evidence) barred(pods []*corev1.Pod, nodes []string) (why, remedy string) {
	for _, name := range nodes {
		n := e.nodes[name]
		if n == nil {
			return "", "" // the caller may not read it, or it is just being added or removed
		}
		for _, p := range pods {
			reason, what := e.bar(p, n)
			if reason == "" {
				return "", ""
			}
			if why == "" {
				why, remedy = reason, what
			}
		}
	}
	return why, remedy
}

// bar describes why a pod can't run on a machine although the GPUs for it are free there. It returns "" if the pod can run there.
func (e *evidence) bar(p *corev1.Pod, n *corev1.Node) (why, remedy string) {
	for _, claim := range claimsOf(p) {
		if s := e.volumes[claim]; s != nil && !selects(s, n) {
			return fmt.Sprintf("its storage %s %s", claim, e.storedOn(claim)),
				e.storageRemedy(s)
		}
	}
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool { return tolerates(&o, t) }) {
			return tainted(n.Name, t)
		}
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil &&
		!selects(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, n) {
		for _, avoided := range e.AvoidedNodes {
			if avoided.Name == n.Name {
				return fmt.Sprintf("it failed on %s %s, and avoids it for a few hours", n.Name, plural.Times(avoided.Failures)),
					e.otherMachine(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution) + "; submitted under another name it doesn't avoid " + n.Name
			}
		}
		return "its node affinity leaves " + n.Name + " out", "change the affinity of the Framework's pods"
	}
	if !labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return fmt.Sprintf("it requires machines with the label %s, which %s doesn't have", labels.SelectorFromSet(p.Spec.NodeSelector), n.Name),
			"an administrator marks machines for jobs with: paictl cluster up -p DIR; or, where paictl did not install Kubernetes, with: paictl service start"
	}
	return "", ""
}

// otherMachine describes when a job that avoids machines will start.
func (e *evidence) otherMachine(may *corev1.NodeSelector) string {
	if cells := e.cellsOn(func(n *corev1.Node) bool { return selects(may, n) }); cells != "" {
		return "it starts when " + cells + " of another machine are free"
	}
	return "no other machine has cells for it"
}

// tainted describes how a taint of a machine affects pods, and returns advice for the user.
func tainted(node string, t *corev1.Taint) (why, remedy string) {
	switch t.Key {
	case corev1.TaintNodeUnschedulable:
		return node + " is cordoned", "an administrator lets jobs go there again with: " + hint.Uncordon(node)
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return node + " doesn't answer", "an administrator sees more with: paictl cluster status"
	case corev1.TaintNodeDiskPressure:
		return "the disk of " + node + " is full", "tell the administrator"
	case corev1.TaintNodeMemoryPressure:
		return node + " is short of memory", "tell the administrator"
	}
	return fmt.Sprintf("%s keeps pods away by the taint %s", node, t.ToString()), "ask the administrator about the purpose of the taint"
}

func tolerates(o *corev1.Toleration, t *corev1.Taint) bool {
	return (o.Effect == "" || o.Effect == t.Effect) && (o.Key == t.Key || o.Key == "" && o.Operator == corev1.TolerationOpExists) &&
		(o.Operator == corev1.TolerationOpExists || o.Value == t.Value)
}

// storedOn describes which machines have a storage.
func (e *evidence) storedOn(claim string) string {
	var on []string
	for _, name := range slices.Sorted(maps.Keys(e.nodes)) {
		if selects(e.volumes[claim], e.nodes[name]) {
			on = append(on, name)
		}
	}
	if len(on) == 0 {
		return "is on no machine that the cluster has now"
	}
	return "is on " + some(on)
}

// some joins the names of machines. If there are more than four, it returns three names and the number of the other machines.
func some(names []string) string {
	if n := len(names); n > 4 {
		return fmt.Sprintf("%s and %s", strings.Join(names[:3], ", "), plural.Of(n-3, "more machine"))
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// selects reports whether at least one term of a selector matches a node.
func selects(s *corev1.NodeSelector, n *corev1.Node) bool {
	terms, err := nodeaffinity.NewNodeSelector(s)
	return err == nil && terms.Match(n)
}

// withoutPreemption removes the part of a message about kube-scheduler's own preemption, which jobs don't use.
func withoutPreemption(message string) string {
	text, _, _ := strings.Cut(message, " preemption: ")
	return text
}
