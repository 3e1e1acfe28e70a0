package job

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Outlook predicts when a job would start if it were submitted now, and its cost.
type Outlook struct {
	// Verdict is starts, preempts (the job starts after it has preempted other jobs), waits (in the queue), never, or unknown.
	Verdict string `json:"verdict" enum:"starts,preempts,waits,never,unknown"`
	// Sentence describes the outlook for users, and Cost describes how many GPU hours the job costs.
	Sentence string `json:"sentence"`
	Cost     string `json:"cost,omitempty"`
	// Reason is why the job would wait or could never start, or why the outlook isn't known.
	Reason string `json:"reason,omitempty"`
	// After are jobs that must end before the job starts.
	After []string `json:"after,omitempty"`
	// Machines are the machines on which the job would start, if the caller may know them. MachineCount is the number of these machines.
	Machines     []string `json:"machines,omitempty"`
	MachineCount int      `json:"machineCount,omitempty"`
	// StartingTasks is the number of tasks that would start now, if other tasks would not start or weren't tried.
	StartingTasks int `json:"startingTasks,omitempty"`
	// Position is the job's place among the QueueLength gangs that would wait in its virtual cluster.
	Position    int `json:"position,omitempty"`
	QueueLength int `json:"queueLength,omitempty"`
	// Preempted is the number of gangs that the job would preempt.
	Preempted int `json:"preempted,omitempty"`
	// Largest is the largest job of the same shape that would start now, as a number of tasks and their GPUs. It is nil if no such job would start,
	// or if that isn't known.
	Largest *cell.Smaller `json:"largest,omitempty"`
	// GPUs is the number of GPUs that the job occupies, and GPUHours its maximum cost. GPUHours is nil if the job file doesn't limit how long tasks
	// run.
	GPUs     int      `json:"gpus"`
	GPUHours *float64 `json:"gpuHours,omitempty"`
}

// Lines returns the outlook as lines of text, or nil if o is nil.
func (o *Outlook) Lines() []string {
	if o == nil {
		return nil
	}
	return slices.DeleteFunc([]string{o.Sentence, o.Cost}, func(line string) bool { return line == "" })
}

// VerdictUnknown is the verdict of an Outlook that can't be predicted. The other verdicts are results of the scheduler.
const VerdictUnknown = "unknown"

// outlookTime bounds how long a check of a job file waits for the scheduler.
const outlookTime = 4 * time.Second

// OnCells reports whether the GPU scheduler places all tasks of the job.
func (p *Prepared) OnCells() bool {
	return !slices.ContainsFunc(p.Objects.Framework.Spec.TaskRoles, func(r v1.TaskRole) bool { return r.Task.Pod.Annotations[annotation.SpecKey] == "" })
}

// Outlook asks the scheduler to predict when a job would start. If the scheduler doesn't respond, the verdict is unknown. names returns the names of
// jobs that the reader may know, and machines reports whether the reader may know machines.
func (c *Client) Outlook(ctx context.Context, p *Prepared, names NameOf, machines bool) *Outlook {
	ctx, cancel := context.WithTimeout(ctx, outlookTime)
	defer cancel()
	answer, err := c.Scheduler.Outlook(ctx, p.newPods(c.machinesOf(ctx, p)))
	if err != nil {
		return p.unknown(err)
	}
	return p.outlook(answer, names, machines)
}

// machinesOf returns selectors of the machines that have the storages of a job, by claim. It returns nil if it can't read the storages.
func (c *Client) machinesOf(ctx context.Context, p *Prepared) map[string]*corev1.NodeSelector {
	var pods []corev1.Pod
	for i := range p.Objects.Framework.Spec.TaskRoles {
		pods = append(pods, corev1.Pod{Spec: p.Objects.Framework.Spec.TaskRoles[i].Task.Pod.Spec})
	}
	volumes, err := c.volumes(ctx, pods)
	if err != nil {
		return nil
	}
	return volumes
}

// withVolumes returns an affinity that combines a with the constraints of storages.
func withVolumes(a *corev1.Affinity, volumes []*corev1.NodeSelector) *corev1.Affinity {
	var terms []corev1.NodeSelectorTerm
	if a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	for _, v := range volumes {
		if len(terms) == 0 {
			terms = v.NodeSelectorTerms
			continue
		}
		var both []corev1.NodeSelectorTerm
		for i := range terms {
			for k := range v.NodeSelectorTerms {
				both = append(both, corev1.NodeSelectorTerm{
					MatchExpressions: slices.Concat(terms[i].MatchExpressions, v.NodeSelectorTerms[k].MatchExpressions),
					MatchFields:      slices.Concat(terms[i].MatchFields, v.NodeSelectorTerms[k].MatchFields),
				})
			}
		}
		terms = both
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// newPods returns the pods of a job, with the fields that the scheduler reads. It adds the machines of storages as constraints, because the scheduler
// otherwise learns only by trying that a pod can't run on a machine without its storage.
func (p *Prepared) newPods(volumes map[string]*corev1.NodeSelector) *schedulerapi.OutlookQuery {
	q := &schedulerapi.OutlookQuery{}
	for i := range p.Objects.Framework.Spec.TaskRoles {
		r := &p.Objects.Framework.Spec.TaskRoles[i]
		if r.TaskNumber < 1 {
			continue
		}
		spec := &r.Task.Pod.Spec
		var bound []*corev1.NodeSelector
		for _, claim := range claimsOf(&corev1.Pod{Spec: *spec}) {
			if v := volumes[claim]; v != nil {
				bound = append(bound, v)
			}
		}
		affinity := spec.Affinity
		if len(bound) > 0 {
			affinity = withVolumes(affinity, bound)
		}
		q.Pods = append(q.Pods, schedulerapi.NewPods{Count: int(r.TaskNumber), Pod: corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{annotation.SpecKey: r.Task.Pod.Annotations[annotation.SpecKey]}, Labels: r.Task.Pod.Labels,
			},
			Spec: corev1.PodSpec{
				NodeSelector: spec.NodeSelector, Affinity: affinity, Tolerations: spec.Tolerations,
				ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds, TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
			},
		}})
	}
	return q
}

// unknown returns an outlook with the verdict unknown and the reason.
func (p *Prepared) unknown(err error) *Outlook {
	o := &Outlook{Verdict: VerdictUnknown, Reason: err.Error()}
	p.complete(o)
	return o
}

// worse lists the verdicts from the best to the worst. A job with several gangs gets the worst verdict of its gangs.
var worse = []string{schedulerapi.Starts, schedulerapi.Preempts, schedulerapi.Waits, schedulerapi.Never}

func (p *Prepared) outlook(answer *schedulerapi.Outlook, names NameOf, machines bool) *Outlook {
	o := &Outlook{Verdict: schedulerapi.Starts}
	var on []string
	starting, tasks := 0, 0
	for i := range answer.Gangs {
		g := &answer.Gangs[i]
		starting, tasks = starting+g.Starting*g.Pods, tasks+g.Count*g.Pods
		for _, node := range g.Nodes {
			if !slices.Contains(on, node) {
				on = append(on, node)
			}
		}
		if slices.Index(worse, g.Result) <= slices.Index(worse, o.Verdict) {
			continue
		}
		o.Verdict, o.Position, o.QueueLength, o.Preempted = g.Result, g.PositionInVC, g.QueueInVC, g.Victims
		if o.Reason = strings.TrimPrefix(g.Reason, "The gang can never start: "); names != nil {
			o.Reason = aloneGangs.ReplaceAllString(names.Redact(o.Reason), AnotherJob)
		}
		if machines {
			o.Reason += g.BadNodes
		}
	}
	if len(answer.Gangs) == 1 && answer.Gangs[0].Count == 1 {
		o.Largest = answer.Gangs[0].Largest
	}
	if o.MachineCount = len(on); machines {
		o.Machines = on
	}
	if starting < tasks {
		o.StartingTasks = starting
	}
	p.complete(o)
	return o
}

// aloneGangs matches the names of gangs of one pod in a text, NAMESPACE/FRAMEWORK-ROLE-INDEX.
var aloneGangs = regexp.MustCompile(`[a-z0-9-]+/[0-9a-f]{32}-[a-z0-9-]+`)

// complete sets the fields that depend only on the job, and the messages.
func (p *Prepared) complete(o *Outlook) {
	summary := api.Summary(p.Objects.Framework)
	o.GPUs = max(summary.Taken(), 0)
	for _, a := range p.Objects.After {
		o.After = append(o.After, a.Job)
	}
	if seconds, limited := p.longest(); limited && o.GPUs > 0 {
		hours := math.Round(float64(o.GPUs)*float64(seconds)/36) / 100
		o.GPUHours = &hours
	}
	o.Sentence, o.Cost = p.outlookText(o), o.costText()
}

// longest returns the longest time that a task may run, in seconds. limited is false if a task may run without a limit.
func (p *Prepared) longest() (seconds int64, limited bool) {
	for i := range p.Objects.Framework.Spec.TaskRoles {
		most := p.Objects.Framework.Spec.TaskRoles[i].Task.Pod.Spec.ActiveDeadlineSeconds
		if most == nil {
			return 0, false
		}
		seconds = max(seconds, *most)
	}
	return seconds, true
}

func (p *Prepared) outlookText(o *Outlook) string {
	text := ""
	switch o.Verdict {
	case schedulerapi.Starts:
		text = "it would start now" + o.on()
	case schedulerapi.Preempts:
		text = fmt.Sprintf("it would preempt %s, and start when %s stopped", plural.Of(o.Preempted, "gang"), verb(o.Preempted, "that one has", "those have"))
	case schedulerapi.Waits:
		text = "it would wait"
		if o.Position > 0 {
			text += fmt.Sprintf(", as %s of %d in the queue of %s", listing.Ordinal(o.Position), o.QueueLength, p.VirtualCluster)
		}
		text += because(o.Reason)
	case schedulerapi.Never:
		text = "it can never start" + because(o.Reason)
	default:
		text = "it isn't known whether it would start now" + because(o.Reason)
	}
	switch {
	case o.StartingTasks > 0 && o.Verdict == schedulerapi.Starts:
		text = fmt.Sprintf("at least %d of %s would start now%s", o.StartingTasks, plural.Of(p.Tasks, "task"), o.on())
	case o.StartingTasks > 0:
		text = fmt.Sprintf("%d of %s would start now%s; after these, %s", o.StartingTasks, plural.Of(p.Tasks, "task"), o.on(), text)
	}
	if len(o.After) > 0 {
		text = fmt.Sprintf("it waits for %s first; without that, %s", strings.Join(o.After, ", "), text)
	}
	text = sentence(text)
	if l := o.Largest; l != nil && (o.Verdict != schedulerapi.Starts || l.Pods > p.Tasks) {
		unit := "GPU"
		if l.CPUCellsPerPod > 0 {
			unit = "CPU cell"
		}
		text += fmt.Sprintf(" The largest job of this shape that would start now has %s of %s.", plural.Of(l.Pods, "task"), plural.Of(l.GPUsPerPod+l.CPUCellsPerPod, unit))
	}
	return text
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(reason, ".")
}

// mostNamed is the largest number of machines that a sentence names.
const mostNamed = 4

// on describes the machines on which the job would start.
func (o *Outlook) on() string {
	switch n := len(o.Machines); {
	case o.MachineCount == 0:
		return ""
	case n == 0:
		return " on " + plural.Of(o.MachineCount, "machine")
	case n == 1:
		return " on " + o.Machines[0]
	case n > mostNamed:
		return fmt.Sprintf(" on %s: %s and %d more", plural.Of(n, "machine"), strings.Join(o.Machines[:mostNamed-1], ", "), n-mostNamed+1)
	default:
		return fmt.Sprintf(" on %s: %s", plural.Of(n, "machine"), strings.Join(o.Machines, ", "))
	}
}

func (o *Outlook) costText() string {
	switch {
	case o.GPUs == 0:
		return ""
	case o.GPUHours != nil:
		return fmt.Sprintf("It costs up to %s GPU hours for each run, with %s until its time limit.", strconv.FormatFloat(*o.GPUHours, 'f', -1, 64), plural.Of(o.GPUs, "GPU"))
	}
	return fmt.Sprintf("It costs %s for each hour that it runs.", plural.Of(o.GPUs, "GPU hour"))
}
