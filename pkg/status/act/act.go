// Package act carries out the user's actions in the view of a cluster: logs, reasons, shells, stopping, restarting,
// draining. In: a connection and rows of the view's model. Out: texts, or the actions that were done. Errors have
// remedies.
package act

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/view"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

const (
	tailService = 200
	tailJournal = 1000
	drainFor    = 10 * time.Minute
	restartWait = 10 * time.Minute
)

// Cluster acts on one cluster, with the rights of a kubeconfig. It implements view.Actions.
type Cluster struct {
	Jobs
	Kube     *kube.Cluster
	Platform *services.Platform
	// Journal follows a machine's journal over SSH. It is nil if the user gave no configuration folder.
	Journal func(ctx context.Context, machine string, out io.Writer) error
	// RestartCommand is the command that restarts services. It is shown in the summary of a restart.
	RestartCommand string
}

var _ view.Actions = (*Cluster)(nil)

// lines lets several writers write whole lines to one stream.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lines) say(text string) { _, _ = io.WriteString(l, text+"\n") } // a closed view ignores lines

// ServicePods implements view.Actions.
func (c *Cluster) ServicePods(ctx context.Context, s *status.Service) ([]view.Pod, error) {
	list, err := c.Platform.Pods(ctx, s.Name)
	if err != nil {
		return nil, c.Kube.Explain(err)
	}
	out := make([]view.Pod, 0, len(list))
	for i := range list {
		out = append(out, podOf(&list[i], time.Now()))
	}
	slices.SortFunc(out, func(a, b view.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// podOf returns a pod as kubectl shows it. If a container waits, the state is the reason of that container, because the
// reason is more useful than the pod's phase.
func podOf(p *corev1.Pod, now time.Time) view.Pod {
	out := view.Pod{Name: p.Name, Node: p.Spec.NodeName, State: string(p.Status.Phase), Message: p.Status.Message, Age: tui.Age(now.Sub(p.CreationTimestamp.Time))}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
		if c.Status != corev1.ConditionTrue && c.Type == corev1.PodScheduled && out.Message == "" {
			out.Message = c.Message
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		out.Restarts += c.RestartCount
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
			out.State = w.Reason
			if w.Message != "" {
				out.Message = w.Message
			}
		}
	}
	if p.DeletionTimestamp != nil {
		out.State = "Terminating"
	}
	if p.Status.Phase == corev1.PodSucceeded {
		out.Ready = true
	}
	return out
}

// ServiceLogs implements view.Actions.
func (c *Cluster) ServiceLogs(ctx context.Context, s *status.Service, out io.Writer) error {
	w := &lines{w: out}
	return c.Kube.Explain(c.Platform.Logs(ctx, services.LogOptions{Name: s.Name, Follow: true, Tail: tailService, Out: w, Problem: func(err error) { w.say("warning: " + err.Error()) }}))
}

// RestartService implements view.Actions. It replaces the service's pods even if their configuration hasn't changed.
func (c *Cluster) RestartService(ctx context.Context, s *status.Service, out io.Writer) error {
	w := &lines{w: out}
	o := services.Options{Names: []string{s.Name}, Wait: restartWait, Renew: true, Command: c.RestartCommand, Again: c.RestartCommand, Sink: sink{w}}
	return c.Kube.Explain(c.Platform.Restart(ctx, o))
}

// sink writes the events of services.Sink as lines.
type sink struct{ w *lines }

// Emit implements services.Sink.
func (s sink) Emit(e services.Event) {
	name := e.Service
	if name != "" {
		name += "  "
	}
	switch e.Kind {
	case services.EventStarted:
		s.w.say(name + "begins")
	case services.EventApplied:
		s.w.say(fmt.Sprintf("%s%s, revision %d", name, e.Action, e.Revision))
	case services.EventProgress:
		if e.State != nil {
			s.w.say(fmt.Sprintf("%s%d of %d pods ready", name, e.State.ReadyPods, e.State.Pods))
		} else if e.Message != "" {
			s.w.say(name + e.Message)
		}
	case services.EventProblem:
		if e.Problem != nil {
			s.w.say(name + e.Problem.Text())
			s.remedy(e.Problem.Hint)
		}
	case services.EventReady:
		s.w.say(name + "ready")
	case services.EventFailed:
		s.w.say(name + "FAILED: " + e.Error)
		s.remedy(e.Hint)
	case services.EventWarning, services.EventReverted, services.EventChanged, services.EventAdded, services.EventNotStarted:
		s.w.say(name + e.Message)
		s.remedy(e.Hint)
	case services.EventRunDone:
		if e.Summary != nil {
			s.w.say(fmt.Sprintf("%s changed in %s", plural.Of(e.Summary.Changes, "object"), tui.Clock(e.Summary.Elapsed)))
		}
	}
}

func (s sink) remedy(text string) {
	if text != "" {
		s.w.say("  -> " + text)
	}
}

// Cordon implements view.Actions.
func (c *Cluster) Cordon(ctx context.Context, machine string) error {
	return c.cordon(ctx, machine, true)
}

// Uncordon implements view.Actions.
func (c *Cluster) Uncordon(ctx context.Context, machine string) error {
	return c.cordon(ctx, machine, false)
}

func (c *Cluster) cordon(ctx context.Context, machine string, yes bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, yes)
	if _, err := c.Kube.Client.CoreV1().Nodes().Patch(ctx, machine, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return c.Kube.Explain(fmt.Errorf("mark node %s: %w", machine, err))
	}
	return nil
}

// Drain implements view.Actions. Like "paictl node remove", it cordons the machine and evicts its pods. It respects
// disruption budgets. If a pod has no controller that would replace the pod, Drain evicts nothing and returns an error
// that names the pod.
func (c *Cluster) Drain(ctx context.Context, machine string, out io.Writer) error {
	if err := c.Cordon(ctx, machine); err != nil {
		return err
	}
	w := &lines{w: out}
	w.say("cordoned " + machine + ": no new pods go there")
	h := &drain.Helper{Ctx: ctx, Client: c.Kube.Client, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1, Timeout: drainFor, Out: w, ErrOut: w,
		OnPodDeletionOrEvictionFinished: func(p *corev1.Pod, _ bool, err error) {
			if err == nil {
				w.say("left: " + p.Namespace + "/" + p.Name)
			}
		}}
	list, errs := h.GetPodsForDeletion(machine)
	if len(errs) > 0 {
		texts := make([]string, 0, len(errs))
		for _, err := range errs {
			texts = append(texts, err.Error())
		}
		return hint.Errorf("delete them yourself if you don't need them, then drain again; the machine stays cordoned", "drain %s: %s", machine, strings.Join(texts, "; "))
	}
	pods := list.Pods()
	w.say(plural.Of(len(pods), "pod") + " to move")
	if err := h.DeleteOrEvictPods(pods); err != nil {
		return c.Kube.Explain(hint.Wrap(fmt.Errorf("drain %s: %w", machine, err), "the machine stays cordoned; drain again, or uncordon it"))
	}
	w.say("drained " + machine + ": it stays cordoned until you uncordon it")
	return nil
}

// MachineJournal implements view.Actions. It reads the journal over SSH if the user gave a configuration folder.
// Otherwise it reads the journal through the kubelet. The kubelet serves journals only if its configuration allows
// that.
func (c *Cluster) MachineJournal(ctx context.Context, m *status.Machine, out io.Writer) error {
	if c.Journal != nil {
		return c.Journal(ctx, m.Name, out)
	}
	body, err := c.Kube.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", m.Name, "proxy", "logs/").
		Param("query", "kubelet").Param("tailLines", fmt.Sprint(tailJournal)).Stream(ctx)
	if err != nil {
		at := m.Address
		if at == "" {
			at = m.Name
		}
		return hint.Errorf("give the configuration folder: paictl status -p DIR; or look there: ssh "+at+" journalctl -f", "the kubelet of %s doesn't show the journal: %w", m.Name, err)
	}
	defer body.Close()
	if _, err := io.Copy(out, body); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read the journal of %s: %w", m.Name, err)
	}
	return nil
}
