package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// patienceWithController is how long the controller may take to see a new job.
const patienceWithController = 10 * time.Second

// explain returns an explanation with the first cause that keeps the job from making progress.
func (e *evidence) explain() *Why {
	w := &Why{Job: e.User + "/" + e.Name, State: e.At().Text(e.now)}
	switch Phase(e.State) {
	case Succeeded, Failed, Stopped, Deleted:
		e.ended(w)
		return w
	case Retry:
		e.retrying(w)
		return w
	case Stopping, Deleting:
		e.stopping(w)
		return w
	}
	switch {
	case e.cutOff:
		w.Sentence = "Its submission was interrupted before its commands were stored."
		w.Remedy = []string{"submit the same file again: that completes it"}
	case e.job.framework.Status == nil:
		e.unseen(w)
	case e.trouble(w):
	case e.Message != "":
		w.Sentence = sentence(e.Message)
		if strings.Contains(e.Message, "exceeded quota") {
			w.Remedy = []string{"it continues automatically when other jobs of the namespace finish; stop some (paictl job stop), or ask an administrator for more"}
		}
	default:
		e.onItsWay(w)
	}
	w.fact("takes", ExcessText(&e.Job))
	e.sickGPUs(w)
	e.lostNodes(w)
	e.before(w)
	return w
}

// before adds a fact about how the previous attempt ended.
func (e *evidence) before(w *Why) {
	if len(e.Attempts) < 2 {
		return
	}
	a := &e.Attempts[1]
	if a.Completion == nil || a.Completion.CompletionStatus == nil {
		return
	}
	past := &Why{}
	e.failure(past, a)
	restarted := a.Completion.Code == machine.CodeRestart
	if restarted {
		past.Sentence = machine.ReasonRestart
		if reason, ok := strings.CutPrefix(a.Completion.Diagnostics, machine.ReasonRestart+" "); ok {
			past.Sentence = strings.TrimSuffix(machine.ReasonRestart, ".") + ": " + clip(reason) + "."
		}
	}
	if a.Completed != nil {
		past.Sentence += " That was " + Duration(e.now.Sub(*a.Completed)) + " ago."
	}
	w.fact(fmt.Sprintf("attempt %d", a.ID), past.Sentence)
	if restarted {
		return
	}
	// The controller puts Kubernetes' message after the reason, which is already part of the sentence.
	said := strings.TrimPrefix(a.Completion.Diagnostics, e.rules.ByCode(int(a.Completion.Code)).Reason)
	w.fact("its message", clip(strings.TrimSpace(said)))
}

// unseen explains a job that has no status yet.
func (e *evidence) unseen(w *Why) {
	switch age := e.now.Sub(e.Submitted); {
	case e.controllerErr != nil:
		w.Sentence = "No controller handles it: " + e.controllerErr.Error() + "."
		w.Remedy = []string{hint.Of(e.controllerErr)}
	case age < patienceWithController:
		w.Sentence = "It was submitted just now."
	default:
		w.Sentence = fmt.Sprintf("The job controller has not handled it for %s, although it answers.", Duration(age))
		w.Remedy = []string{"look at: paictl service logs -n job-controller"}
	}
}

// onItsWay describes the progress of a job that has no problem.
func (e *evidence) onItsWay(w *Why) {
	phase, tasks := Phase(e.State), e.byPhase()
	switch phase {
	case Queued, Waiting:
		e.unplaced(w)
	case Starting:
		if len(tasks[Starting]) == 0 { // the job's state and its tasks were read at different times
			w.Sentence = "Its tasks are about to run."
			break
		}
		t := tasks[Starting][0]
		w.Sentence = fmt.Sprintf("%s %s for %s.", e.list(tasks[Starting]), verb(len(tasks[Starting]), "waits", "wait"), e.startingWhat(t))
		w.fact("since", Duration(e.now.Sub(t.Started))+" ago")
	case Barrier:
		w.Sentence = fmt.Sprintf("All %d tasks have their machines and are getting each other's addresses.", len(e.Tasks))
		if late := append(slices.Clone(tasks[Waiting]), tasks[Starting]...); len(late) > 0 {
			w.Sentence = fmt.Sprintf("%d of %d tasks %s for %s to start.", len(tasks[Barrier]), len(e.Tasks), verb(len(tasks[Barrier]), "waits", "wait"), e.list(late))
		}
	default:
		w.Sentence = "It is running, and isn't waiting."
		if since := e.runsSince(); since != nil {
			w.Sentence = "It has run for " + Duration(e.now.Sub(*since)) + ", and isn't waiting."
		}
	}
	for _, p := range []Phase{Waiting, Queued, Starting, Barrier, Running, Retry, Succeeded, Failed} {
		if n := len(tasks[p]); n > 0 && n < len(e.Tasks) {
			w.fact(string(p), e.list(tasks[p]))
		}
	}
}

// unplaced explains pods that have no machine.
func (e *evidence) unplaced(w *Why) {
	if e.gang != nil {
		e.queued(w)
		return
	}
	for i := range e.pods {
		if why := unschedulable(&e.pods[i]); why != "" {
			w.Sentence = "No machine takes " + e.nameOf(&e.pods[i]) + ": " + sentence(why)
			w.Remedy = remedyUnschedulable(why)
			e.pinned(w)
			return
		}
	}
	waiting := 0
	for i := range e.pods {
		if e.pods[i].Spec.NodeName == "" {
			waiting++
		}
	}
	switch {
	case waiting == 0 && e.controllerErr != nil:
		w.Sentence = "Its pods are not created: " + e.controllerErr.Error() + "."
		w.Remedy = []string{hint.Of(e.controllerErr)}
	case waiting == 0:
		w.Sentence = "Its pods are being created."
	case errors.Is(e.schedulerErr, vc.ErrNotRunning) && e.GPUs > 0:
		w.Sentence = "Its pods wait for the scheduler of GPUs: " + e.schedulerErr.Error() + "."
		w.Remedy = []string{"look at it with: paictl service status -n scheduler; start it with: paictl service start -n scheduler"}
	default:
		w.Sentence = fmt.Sprintf("%d of its pods %s for a machine; no scheduler has reported on them yet.", waiting, verb(waiting, "waits", "wait"))
	}
}

// queued adds the scheduler's explanation of a gang in the queue.
func (e *evidence) queued(w *Why) {
	g := e.gang
	w.Sentence = sentence(g.Sentence)
	if e.Position > 0 {
		w.fact("queue", fmt.Sprintf("%s in %s, for %s", listing.Ordinal(e.Position), g.VC, Duration(e.now.Sub(g.Since))))
	}
	x := g.Explanation
	if x != nil {
		e.promiseLess(w)
		e.keptFrom(w)
	}
	e.pinned(w)
	if x == nil {
		return
	}
	asks := g.Asks
	if asks == (schedulerapi.Request{}) { // an older scheduler doesn't report this
		asks.GPUs = x.GPUs
	}
	w.fact("asks for", fmt.Sprintf("%s in %s", RequestText(asks), plural.Of(max(x.Pods, len(g.Pods)), "pod")))
	w.fact("takes", ShareText(asks))
	if x.Code == cell.NoVirtualCluster {
		w.Sentence = fmt.Sprintf("Its virtual cluster %s no longer exists, so that it will never start.", g.VC)
		w.Remedy = []string{
			fmt.Sprintf("submit it to another (paictl vc list): paictl job clone %s -o job.yaml, write its name into defaults.virtualCluster, paictl job submit job.yaml; then: paictl job delete %[1]s", w.Job),
			"or ask an administrator to make it again: paictl vc set " + g.VC + " --cells TYPE=N",
		}
		return
	}
	if x.Code == cell.Unsatisfiable {
		w.Remedy = []string{fmt.Sprintf("submit a job that requests less under another name: paictl job clone %s -o job.yaml; then: paictl job delete %[1]s", w.Job)}
	}
	if x.CPUCells > 0 {
		w.fact("takes", CPUCellsText(x.CPUCells, asks))
	}
	unit, owned, used, free := "GPU", x.OwnedGPUs, x.UsedGPUs, x.FreeGPUs
	if x.CPUCells > 0 {
		unit, owned, used, free = "CPU cell", x.OwnedCPUCells, x.UsedCPUCells, x.FreeCPUCells
	}
	owns := fmt.Sprintf("%s owns %s: %d used, %d free", g.VC, plural.Of(owned, unit), used, free)
	if or := g.Alternative; or != nil {
		owns += fmt.Sprintf("; and %s: %d used, %d free", plural.Of(or.OwnedGPUs, "GPU"), or.UsedGPUs, or.FreeGPUs)
	}
	w.fact("virtual cluster", owns)
	if asks.ShareOfGPUs > 0 && x.Code != cell.Ready {
		w.Remedy = append(w.Remedy, "with less cpu and memoryMB, a task holds fewer GPUs; if a virtual cluster owns machines without GPUs (paictl vc list), such tasks run there")
	}
	var missing []string
	for _, m := range x.Missing {
		missing = append(missing, fmt.Sprintf("%d × %s", m.Count, m.CellType))
	}
	w.fact("missing", strings.Join(missing, ", "))
	holders := e.holders(w, x.Holders, unit)
	if g.Alternative != nil {
		holders = append(holders, e.holders(w, g.Alternative.Holders, "GPU")...)
	}
	w.fact("held by", strings.Join(holders, ", "))
	if s := x.Smaller; s != nil && !e.limited() {
		w.fact("would start now", fmt.Sprintf("%s of %s", plural.Of(s.Pods, "pod"), plural.Of(s.GPUsPerPod+s.CPUCellsPerPod, unit)))
	}
}

// limited reports whether pods can run only on some machines because of their storages, or because the job avoids machines. The GPU scheduler doesn't
// know these limits until it has found cells.
func (e *evidence) limited() bool { return len(e.volumes)+len(e.AvoidedNodes) > 0 }

// promiseLess removes the statement that a smaller job would start now, if the job's pods can't run on all machines.
func (e *evidence) promiseLess(w *Why) {
	if !e.limited() {
		return
	}
	for _, x := range []*cell.Explanation{e.gang.Explanation, e.gang.Alternative} {
		if x != nil {
			w.Sentence = x.WithoutSmaller(w.Sentence)
		}
	}
}

// holders describes the jobs that hold cells that the gang waits for, and the number of cells that each job holds.
func (e *evidence) holders(w *Why, all []cell.Holder, unit string) []string {
	has := map[string]int{}
	for _, h := range all {
		title := JobOfGroup(h.Gang)
		if title == h.Gang {
			title = cmp.Or(e.alone[ObjectOfGroup(h.Gang)], title)
		}
		if !slices.Contains(w.others, title) {
			w.others = append(w.others, title)
		}
		has[title] += h.GPUs + h.CPUCells
	}
	var out []string
	for _, title := range w.others {
		if has[title] > 0 {
			out = append(out, fmt.Sprintf("%s (%s)", title, plural.Of(has[title], unit)))
		}
	}
	return out
}

// JobOfGroup returns the displayed name of a gang's job: user/name.
func JobOfGroup(group string) string {
	first, _, _ := strings.Cut(group, "/")
	if user, name, ok := strings.Cut(first, "~"); ok {
		return user + "/" + name
	}
	return group
}

// sickGPUs adds facts about the GPUs of running tasks that a machine reports as sick. A program that uses such a GPU may hang forever.
func (e *evidence) sickGPUs(w *Why) {
	for i := range e.pods {
		p := &e.pods[i]
		n := e.nodes[p.Spec.NodeName]
		if n == nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		var told schedulerapi.NodeDevices
		if json.Unmarshal([]byte(n.Annotations[schedulerapi.DevicesAnnotation]), &told) != nil {
			continue
		}
		var sick []string
		for _, index := range strings.Split(p.Annotations[annotation.IsolationKey], ",") {
			for _, d := range told.Devices {
				if fmt.Sprint(d.Index) == strings.TrimSpace(index) && !d.Healthy && !d.ForPods {
					sick = append(sick, fmt.Sprintf("GPU %d: %s", d.Index, cmp.Or(d.Reason, "it is not healthy")))
				}
			}
		}
		if len(sick) == 0 {
			continue
		}
		if Phase(e.State) == Running && w.Remedy == nil {
			w.Sentence = fmt.Sprintf("%s runs on %s, which reports a sick GPU of it: %s.", e.nameOf(p), n.Name, strings.TrimRight(clip(sick[0]), "."))
			w.Remedy = []string{"if the program makes no progress, start it again on other GPUs: paictl job retry " + w.Job, "an administrator sees more with: paictl node gpu list " + n.Name}
		}
		w.fact("sick GPUs", fmt.Sprintf("%s on %s: %s", e.nameOf(p), n.Name, clip(strings.Join(sick, "; "))))
	}
}

// lostNodes adds a fact for each machine that doesn't respond, even if the job waits for another reason.
func (e *evidence) lostNodes(w *Why) {
	seen := map[string]bool{}
	for i := range e.Tasks {
		t := &e.Tasks[i]
		n := e.nodes[t.Node]
		if n == nil || t.Phase.Done() || seen[n.Name] {
			continue
		}
		since, lost := notReady(n)
		if !lost {
			continue
		}
		seen[n.Name] = true
		if Phase(e.State) == Running {
			w.Sentence = fmt.Sprintf("%s is on %s, which has not answered for %s.", t.Name(), n.Name, Duration(e.now.Sub(since)))
			w.Remedy = []string{"wait: if the machine doesn't come back, Kubernetes evicts the task after a few minutes, and it is retried elsewhere", "an administrator sees more with: paictl cluster status"}
		}
		w.fact("machine", fmt.Sprintf("%s has not answered since %s", n.Name, since.Local().Format(time.DateTime)))
	}
}

func notReady(n *corev1.Node) (since time.Time, lost bool) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// stopping explains which tasks of a job that is being stopped haven't ended yet.
func (e *evidence) stopping(w *Why) {
	var left []*Task
	for i := range e.Tasks {
		if t := &e.Tasks[i]; !t.Phase.Done() {
			left = append(left, t)
		}
	}
	w.Sentence = "It was asked to stop"
	switch {
	case e.job.framework.DeletionTimestamp != nil:
		w.Sentence = "It was deleted"
	case e.job.framework.Spec.ExecutionType != "Stop":
		w.Sentence = "An attempt has ended, and its other tasks are being stopped"
	}
	if len(left) > 0 {
		w.Sentence += fmt.Sprintf("; %s %s time to save %s data.", e.list(left), verb(len(left), "has", "have"), verb(len(left), "its", "their"))
	} else {
		w.Sentence += "; all its tasks have stopped."
	}
	if e.controllerErr != nil {
		w.Sentence = "It should stop, but no controller stops it: " + e.controllerErr.Error() + "."
		w.Remedy = []string{hint.Of(e.controllerErr)}
	}
	e.lostNodes(w)
}

func (e *evidence) byPhase() map[Phase][]*Task {
	out := map[Phase][]*Task{}
	for i := range e.Tasks {
		out[e.Tasks[i].Phase] = append(out[e.Tasks[i].Phase], &e.Tasks[i])
	}
	return out
}

// list joins the names of tasks. If there are many tasks, it names only the first three.
func (e *evidence) list(tasks []*Task) string {
	var names []string
	for _, t := range tasks {
		if len(names) == 3 && len(tasks) > 4 {
			return fmt.Sprintf("%s and %s", strings.Join(names, ", "), plural.Of(len(tasks)-3, "more task"))
		}
		names = append(names, t.Name())
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// nameOf returns the displayed name of the task that runs in a pod.
func (e *evidence) nameOf(p *corev1.Pod) string {
	for i := range e.Tasks {
		if e.Tasks[i].Pod == p.Name {
			return e.Tasks[i].Name()
		}
	}
	return p.Name
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// sentence adds a full stop to a text, and capitalizes its first letter unless the text begins with a name.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	first, _, _ := strings.Cut(s, " ")
	if strings.ContainsFunc(first, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// runsSince returns when the latest attempt began to run, or nil. It doesn't count earlier attempts and the time in queues.
func (e *evidence) runsSince() *time.Time {
	if a := e.lastAttempt(); a != nil && a.Run != nil {
		return a.Run
	}
	return e.Started
}
