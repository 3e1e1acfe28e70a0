package job

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// GetOptions are the options of "paictl job get".
type GetOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Name    string
	// AllTasks prints every task of a large job. Config prints the job file instead of the page about the job.
	AllTasks, Config bool
	Output           cmdutil.Output
}

// maxTasks is how many tasks a page shows. If a job has more tasks, the page shows the tasks that need attention first.
const maxTasks = 40

// maxFaults limits the number of tasks with GPU faults that a page lists.
const maxFaults = 3

// NewCmdGet returns "paictl job get".
func NewCmdGet(f *cmdutil.Factory) *cobra.Command {
	opts := &GetOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "get NAME",
		Aliases:    []string{"show"},
		SuggestFor: []string{"describe", "status", "info", "inspect", "scontrol"},
		Short:      "Show a job: its state, roles, tasks and attempts",
		Long: `Shows everything that is known about a running or finished job. For a job with many tasks it shows
first those that don't run normally; --all-tasks shows all. On a terminal, tables are fitted to its width; -o
wide shows them in full.

--config prints the job file as it was submitted, with its secrets masked.`,
		Example: `  paictl job get train
  paictl job get bob/train --all-tasks
  paictl job get train -o json | jq '.taskList[] | {role, index, node}'
  paictl job get train --config`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return getRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().BoolVar(&opts.AllTasks, "all-tasks", false, "show every task of a large job")
	cmd.Flags().BoolVar(&opts.Config, "config", false, "print the job file, secrets masked")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "wide", "json", "yaml", "name")
	return cmd
}

func getRun(ctx context.Context, opts *GetOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	d, err := c.Detail(ctx, j)
	if err != nil {
		return err
	}
	out := opts.Factory.IO.Out
	switch {
	case opts.Config:
		text := strings.TrimRight(d.Config, "\n")
		if opts.Factory.IO.IsOutTTY() {
			text = terminal.Text(text)
		}
		_, err := io.WriteString(out, text+"\n")
		return err
	case opts.Output.Is("text"), opts.Output.Is("wide"):
		return writePage(out, &opts.Output, d, time.Now(), opts.AllTasks)
	}
	return opts.Output.Write(out, d, cmdutil.Table{Rows: [][]string{{j.Title()}}})
}

// writePage prints a page about a job for a person.
func writePage(out io.Writer, output *cmdutil.Output, d *job.Detail, now time.Time, allTasks bool) error {
	if err := writeHead(out, d, now); err != nil {
		return err
	}
	table, left := tasksTable(d, now, allTasks)
	if err := output.WriteTable(out, table); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(out, "(%d more: --all-tasks)\n", left)
	}
	if len(d.Attempts) > 1 {
		fmt.Fprintln(out)
		if err := output.WriteTable(out, attemptsTable(d)); err != nil {
			return err
		}
	}
	if d.Note != "" {
		fmt.Fprintln(out, "\n"+terminal.Line(d.Note))
	}
	switch p := job.Phase(d.State); p {
	case job.Running, job.Succeeded, job.Stopped:
	default:
		fmt.Fprintf(out, "\nwhy: paictl job why %s\n", terminal.Line(d.User+"/"+d.Name))
	}
	return nil
}

// writeHead writes the part of the page about the whole job.
func writeHead(out io.Writer, d *job.Detail, now time.Time) error {
	rows := cmdutil.NewRows(out)
	line := func(what, text string) {
		if text != "" {
			rows.Add(what, text)
		}
	}
	line("Job", d.User+"/"+d.Name)
	line("State", stateLine(d, now))
	line("", d.Message)
	line("Virtual cluster", vcLine(d))
	line("Submitted", stamp(&d.Submitted, now))
	line("Started", stamp(d.Started, now))
	if job.Phase(d.State) == job.Deleted {
		line("Found missing", stamp(d.Completed, now))
	} else {
		line("Ended", stamp(d.Completed, now))
	}
	line("Asks for", askLine(d))
	line("Takes", job.ExcessText(&d.Job))
	if d.Retries > 0 {
		line("Retries", strconv.Itoa(int(d.Retries)))
	}
	for _, a := range d.After {
		line("Starts after", cmp.Or(a.Job, "a job that you don't see"))
	}
	if from := d.ClonedFrom; from != nil && from.UID == "" {
		line("Cloned from", "a job that you don't see")
	} else if from != nil {
		line("Cloned from", from.Title()+", submitted "+stamp(&from.Submitted, now))
	}
	for _, n := range d.AvoidedNodes {
		if job.Avoids(n, now) {
			line("Avoids", fmt.Sprintf("%s, which failed it %s", n.Name, plural.Times(n.Failures)))
		}
	}
	for _, text := range faults(d.Tasks) {
		line("GPU fault", text)
	}
	line("Framework", d.Framework)
	if err := rows.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// faults describes the GPU faults of up to maxFaults failed tasks.
func faults(tasks []job.Task) []string {
	var out []string
	for i := range tasks {
		t := &tasks[i]
		text := t.GPUFault()
		if text == "" {
			continue
		}
		if len(out) == maxFaults {
			return append(out, "and of more tasks")
		}
		where := t.Name()
		if t.Node != "" {
			where += " on " + t.Node
		}
		out = append(out, where+": "+text)
	}
	return out
}

func stateLine(d *job.Detail, now time.Time) string {
	text := d.At().Text(now)
	if p := job.Phase(d.State); p == job.Running && d.Started != nil {
		text += " for " + job.Duration(now.Sub(*d.Started))
	} else if p.Done() && p != job.Deleted && d.Started != nil && d.Completed != nil {
		text += " after " + job.Duration(d.Completed.Sub(*d.Started))
	}
	if job.Phase(d.State) == job.Failed {
		text += ": " + exitText(d.Code, d.Phrase)
	}
	return text
}

func vcLine(d *job.Detail) string {
	if d.Priority == "" {
		return d.VirtualCluster
	}
	return d.VirtualCluster + ", priority " + d.Priority
}

func askLine(d *job.Detail) string {
	text := plural.Of(d.Job.Tasks, "task")
	if d.GPUs > 0 {
		text += ", " + plural.Of(d.GPUs, "GPU")
	} else if d.MilliCPU > 0 || d.MemoryMB > 0 {
		text += ", " + job.HostText(d.MilliCPU, d.MemoryMB)
	}
	return text
}

// stamp formats a time, followed by how long ago it was. It returns "" if there is no time.
func stamp(at *time.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime) + " (" + job.Duration(now.Sub(*at)) + " ago)"
}

// tasksTable returns a table of the tasks of the latest attempt, and the number of omitted tasks. If tasks are omitted, the tasks that need
// attention come first. For a job without tasks, it returns a table of its roles.
func tasksTable(d *job.Detail, now time.Time, all bool) (t cmdutil.Table, left int) {
	if len(d.Tasks) == 0 {
		t.Header = []string{"ROLE", "TASKS", "IMAGE"}
		for _, r := range d.Roles {
			t.Rows = append(t.Rows, []string{r.Name, fmt.Sprint(r.Tasks), cmp.Or(r.Image, "-")})
		}
		return t, 0
	}
	shown := d.Tasks
	if !all && len(shown) > maxTasks {
		shown = chosen(d.Tasks)
	}
	t.Header = []string{"TASK", "STATE", "NODE", "IP", "RAN", "RETRIES", "EXIT"}
	for i := range shown {
		task := &shown[i]
		exit := "-"
		if code, ok := task.Code(); ok {
			exit = exitText(&code, task.Completion.Phrase)
		}
		t.Rows = append(t.Rows, []string{task.Name(), taskState(task, now), cmp.Or(task.Node, "-"), cmp.Or(task.IP, "-"), ran(task, now), fmt.Sprint(task.Retries), exit})
	}
	return t, len(d.Tasks) - len(shown)
}

// chosen returns the tasks that the page of a large job shows.
func chosen(tasks []job.Task) []job.Task {
	rank := func(p job.Phase) int {
		switch p {
		case job.Failed:
			return 0
		case job.Retry, job.Starting, job.Waiting, job.Queued:
			return 1
		}
		return 2
	}
	var out []job.Task
	for want := range 3 {
		for i := range tasks {
			if rank(tasks[i].Phase) == want && len(out) < maxTasks {
				out = append(out, tasks[i])
			}
		}
	}
	return out
}

func taskState(t *job.Task, now time.Time) string {
	return job.State{Phase: t.Phase, RetryAt: t.RetryAt}.Text(now)
}

func ran(t *job.Task, now time.Time) string {
	if t.Run == nil {
		return "-"
	}
	end := now
	if t.Completed != nil {
		end = *t.Completed
	}
	return job.Duration(end.Sub(*t.Run))
}

// attemptsTable returns a table of the attempts of the whole job.
func attemptsTable(d *job.Detail) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"ATTEMPT", "STARTED", "RAN", "EXIT", "ENDED BY"}}
	for i := range d.Attempts {
		a := &d.Attempts[i]
		ranFor, exit, by := "-", "-", "-"
		if a.Run != nil && a.Completed != nil {
			ranFor = job.Duration(a.Completed.Sub(*a.Run))
		}
		if c := a.Completion; c != nil && c.CompletionStatus != nil {
			exit = exitText(&c.Code, c.Phrase)
			if c.Trigger != nil && c.Trigger.TaskIndex != nil {
				by = job.TaskName(roleName(d, c.Trigger.TaskRoleName), *c.Trigger.TaskIndex)
			}
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(a.ID), a.Started.Local().Format(time.DateTime), ranFor, exit, by})
	}
	return t
}

// roleName returns the name in the job file for a role of the Framework.
func roleName(d *job.Detail, object string) string {
	for _, r := range d.Roles {
		if r.Object == object {
			return r.Name
		}
	}
	return object
}
