package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/tui"
)

type jobPage struct {
	*list[*job.Task]
	j      *status.Job
	gone   bool
	detail *job.Detail
	err    error
	asked  *status.Job // the state that the tasks were last requested for
	wait   bool
}

func newJob(j *status.Job) page {
	p := &jobPage{j: j}
	type t = *job.Task
	p.list = newList(list[t]{
		noun: "task",
		all: func(*env) []t {
			if p.detail == nil {
				return nil
			}
			return pointers(p.detail.Tasks)
		},
		id:   func(v t) string { return v.Name() },
		text: func(v t) string { return lower(v.Name(), v.Node, v.IP, string(v.Phase), endText(v)) },
		head: p.facts,
		open: func(d *env, v t) effect { return p.logs(d, v.Name()) },
		tell: func(_ *env, v t) string { return endText(v) },
		cols: []column[t]{
			{Column: tui.Column{Min: 1}, cell: taskSign},
			{Column: tui.Column{Title: "TASK", Min: 12, Ideal: 20}, cell: func(_ *env, v t) tui.Cell { return text(v.Name()) }, order: func(a, b t) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index)) }},
			{Column: tui.Column{Title: "STATE", Min: 10, Ideal: 12}, cell: func(d *env, v t) tui.Cell { return tui.Cell{Text: taskState(v, d.now), Style: taskSign(d, v).Style} }, order: func(a, b t) int { return cmp.Compare(a.Phase, b.Phase) }},
			{Column: tui.Column{Title: "MACHINE", Min: 10, Ideal: 20, Priority: 1}, cell: func(_ *env, v t) tui.Cell { return text(v.Node) }, order: func(a, b t) int { return cmp.Compare(a.Node, b.Node) }},
			{Column: tui.Column{Title: "RAN", Min: 6, Right: true, Priority: 2}, cell: func(d *env, v t) tui.Cell {
				switch {
				case v.Run == nil:
					return text("-")
				case v.Completed != nil:
					return text(tui.Clock(v.Completed.Sub(*v.Run)))
				}
				return text(tui.Clock(d.now.Sub(*v.Run)))
			}},
			{Column: tui.Column{Title: "RETRIES", Min: 7, Right: true, Priority: 4}, cell: func(_ *env, v t) tui.Cell { return number(int(v.Retries)) }, order: func(a, b t) int { return cmp.Compare(a.Retries, b.Retries) }, down: true},
			{Column: tui.Column{Title: "ADDRESS", Min: 10, Ideal: 15, Priority: 5}, cell: func(_ *env, v t) tui.Cell { return text(v.IP) }},
			{Column: tui.Column{Title: "END", Min: 10, Ideal: 30, Priority: 3, Grows: true}, cell: func(_ *env, v t) tui.Cell { return text(endText(v)) }},
		},
	})
	return p
}

func taskSign(d *env, t *job.Task) tui.Cell {
	return jobSign(d, &status.Job{Row: job.Row{Job: api.Job{State: string(t.Phase)}}})
}

func taskState(t *job.Task, now time.Time) string {
	return job.State{Phase: t.Phase, RetryAt: t.RetryAt}.Text(now)
}

// endText describes the end of a task: the exit code, the reason, and faults of its GPUs.
func endText(t *job.Task) string {
	code, ok := t.Code()
	switch {
	case !ok:
		return t.GPUFault()
	case code == 0:
		return "exit code 0"
	}
	s := fmt.Sprintf("exit code %d", code)
	if p := t.Completion.Phrase; p != "" {
		s += ": " + rules.Words(p)
	}
	if f := t.GPUFault(); f != "" {
		s += ", " + f
	}
	return s
}

func (p *jobPage) title() string { return p.j.Title() }

// refresh requests the tasks again if the job has changed. Models share unchanged jobs, so comparing pointers is
// enough.
func (p *jobPage) refresh(d *env) effect {
	i := slices.IndexFunc(d.cluster.Jobs, func(j *status.Job) bool { return j.UID == p.j.UID })
	if p.gone = i < 0; !p.gone {
		p.j = d.cluster.Jobs[i]
	}
	e := p.list.refresh(d)
	if p.wait || p.asked == p.j {
		return e
	}
	j := p.j
	p.asked, p.wait = j, true
	e.cmd = ask(d, p, func(ctx context.Context) (*job.Detail, error) { return d.act.Tasks(ctx, j) })
	return e
}

func (p *jobPage) receive(d *env, a answer) effect {
	switch v := a.value.(type) {
	case *job.Detail:
		p.wait, p.err = false, a.err
		if a.err == nil {
			p.detail = v
		}
		return p.refresh(d)
	case *job.Why:
		if a.err != nil {
			return complain(d, a.err)
		}
		return effect{push: newText("why", whyText(v))}
	case []api.Event:
		if a.err != nil {
			return complain(d, a.err)
		}
		return effect{push: newText("events", eventLines(d, p.j, v))}
	}
	return effect{}
}

func (p *jobPage) facts(d *env, w, h int) []string {
	j := p.j
	switch {
	case p.err != nil:
		p.empty = problem(p.err)
	case p.detail == nil:
		p.empty = "asking…"
	default:
		p.empty = "no tasks yet"
	}
	sign := jobSign(d, j)
	state := sign.Text + " " + j.At().Text(d.now)
	if p.gone {
		state += " (it is no longer in the list)"
	}
	ended := ""
	if j.Completed != nil {
		ended = d.age(*j.Completed) + " ago"
	}
	message := ""
	if p.detail != nil {
		message = p.detail.Message
	}
	out := []string{"  " + sign.Style.Text(state)}
	if n := jobNote(j); n != "" {
		for _, l := range tui.Wrap(clean(n), w-4) {
			out = append(out, "  "+l)
		}
	}
	out = out[:min(len(out), 5)]
	return append(out, facts(d, w, h-len(out), [2]string{"VC", j.VirtualCluster}, [2]string{"priority", j.Priority}, [2]string{"GPUs", gpusOf(j)}, [2]string{"tasks", number(j.Tasks).Text},
		[2]string{"submitted", d.age(j.Submitted) + " ago"}, [2]string{"ran", took(d, j)}, [2]string{"ended", ended}, [2]string{"retries", number(int(j.Retries)).Text},
		[2]string{"machines", strings.Join(j.Nodes, " ")}, [2]string{"controller", message})...)
}

func (p *jobPage) key(d *env, k string) (effect, bool) {
	task := ""
	if v, ok := p.current(); ok {
		task = v.Name()
	}
	j := p.j
	switch k {
	case "l":
		return p.logs(d, task), true
	case "L":
		return p.logs(d, ""), true
	case "s":
		return shell(d, j, task), true
	case "w":
		return effect{cmd: ask(d, p, func(ctx context.Context) (*job.Why, error) { return d.act.Why(ctx, j) })}, true
	case "e":
		return effect{cmd: ask(d, p, func(ctx context.Context) ([]api.Event, error) { return d.act.JobEvents(ctx, j) })}, true
	}
	if e, ok := p.list.key(d, k); ok {
		return e, ok
	}
	return change(d, j, k)
}

func (p *jobPage) keys(*env) []binding {
	out := []binding{{"l", "logs"}, {"L", "logs of all tasks"}, {"w", "why"}, {"e", "events"}, {"s", "shell"}}
	out = append(out, changes(p.j)...)
	return append(out, binding{"/", "filter"}, binding{"o", "order by"})
}

func (p *jobPage) logs(d *env, task string) effect { return jobLogs(d, p.j, task) }

func jobLogs(d *env, j *status.Job, task string) effect {
	name := "logs of " + j.Title()
	if task != "" {
		name = "logs of " + task
	}
	return newStream(d, name, false, func(ctx context.Context, out io.Writer) error { return d.act.JobLogs(ctx, j, task, out) })
}

// shell suspends the view and opens a shell in a task.
func shell(d *env, j *status.Job, task string) effect {
	if job.Phase(j.State) != job.Running {
		return effect{say: &notice{text: j.Title() + " " + job.Phase(j.State).Verb() + ": there is no task to open a shell in", bad: true, until: d.now.Add(noticeFor)}}
	}
	return effect{cmd: tea.Exec(d.act.Shell(j, task), func(err error) tea.Msg {
		if err != nil {
			err = fmt.Errorf("shell in %s: %w", j.Title(), err)
		}
		return done{err: err, away: true}
	})}
}

func jobKey(d *env, j *status.Job, k string) (effect, bool) {
	switch k {
	case "l", "L":
		return jobLogs(d, j, ""), true
	case "s":
		return shell(d, j, ""), true
	case "w", "e": // the response is shown above the job's own page
		p := newJob(j)
		e, _ := p.key(d, k)
		e.push = p
		return e, true
	}
	return change(d, j, k)
}

func jobKeys(_ *env, j *status.Job) []binding {
	return append([]binding{{"l", "logs"}, {"w", "why"}, {"s", "shell"}}, append(changes(j), binding{"e", "events"})...)
}

// change stops or retries a job, depending on k. It ignores other keys.
func change(d *env, j *status.Job, k string) (effect, bool) {
	phase := job.Phase(j.State)
	switch {
	case k == "x" && (phase.Done() || phase == job.Stopping || phase == job.Deleting):
		return say(d, j.Title()+" "+phase.Verb()), true
	case k == "x":
		what := j.State
		if n := j.Taken(); n > 0 {
			what += ", " + plural.Of(n, "GPU")
		}
		text := fmt.Sprintf("Stop job %s (%s)? Its programs get SIGTERM and time to save their state.", j.Title(), what)
		return effect{ask: &question{text: text, yes: func(d *env) effect {
			return start(d, func(ctx context.Context) error { return d.act.StopJob(ctx, j) },
				notice{text: "stopping " + j.Title(), undo: "run it again from its start", do: func(d *env) effect { return retry(d, j) }})
		}}}, true
	case k == "r" && (phase.Done() || phase == job.Retry):
		return retry(d, j), true
	case k == "r":
		return say(d, j.Title()+" "+phase.Verb()+": there is nothing to retry"), true
	}
	return effect{}, false
}

func retry(d *env, j *status.Job) effect {
	return start(d, func(ctx context.Context) error { return d.act.RetryJob(ctx, j) }, notice{text: "retrying " + j.Title()})
}

func changes(j *status.Job) []binding {
	switch phase := job.Phase(j.State); {
	case phase == job.Retry:
		return []binding{{"r", "retry now"}, {"x", "stop"}}
	case phase.Done():
		return []binding{{"r", "retry"}}
	case phase == job.Stopping, phase == job.Deleting:
		return nil
	}
	return []binding{{"x", "stop"}}
}

// openJob opens the job with a UID. If uid is "", it opens the job with a title.
func openJob(d *env, title, uid string) effect {
	for _, j := range d.cluster.Jobs {
		if uid != "" && j.UID == uid || uid == "" && j.Title() == title {
			return effect{push: newJob(j)}
		}
	}
	return say(d, "the job "+clean(title)+" is not in the list of jobs")
}

func openOwner(d *env, g *status.GPU) effect {
	switch {
	case g.Owner == nil:
		return say(d, "this GPU isn't allocated")
	case g.Owner.Job == "":
		return say(d, "it belongs to the pod "+clean(g.Owner.Pod)+", which doesn't belong to a job")
	}
	return openJob(d, g.Owner.Job, g.Owner.JobUID)
}

func whyText(w *job.Why) []string {
	out := []string{w.Job + " (" + w.State + ")", w.Sentence}
	for _, r := range w.Remedy {
		out = append(out, "  -> "+r)
	}
	if len(w.Facts) > 0 {
		out = append(out, "")
		label := 0
		for _, f := range w.Facts {
			label = max(label, tui.Width(clean(f.What)))
		}
		for _, f := range w.Facts {
			out = append(out, tui.Pad(clean(f.What), label)+"  "+clean(f.Text))
		}
	}
	if len(w.Log) > 0 {
		out = append(out, "", "its log:")
		for _, l := range w.Log {
			out = append(out, "  "+l)
		}
	}
	return out
}

func eventLines(d *env, j *status.Job, list []api.Event) []string {
	if len(list) == 0 {
		return []string{j.Title() + " has no events"}
	}
	var out []string
	for _, e := range list {
		sign := " "
		if e.Type == "Warning" {
			sign = tui.SignWarn
		}
		count := ""
		if e.Count > 1 {
			count = fmt.Sprintf(" (%d times)", e.Count)
		}
		out = append(out, fmt.Sprintf("%s %s %s  %s%s: %s", sign, tui.PadLeft(d.age(e.Time), 4), rules.Words(e.Reason), e.Object, count, e.Message))
	}
	return out
}
