package vc

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// ShowOptions are the options of "paictl vc show".
type ShowOptions struct {
	Factory *cmdutil.Factory
	Flags   connection.Flags
	Output  cmdutil.Output
	Name    string
}

// shown is the output of "show -o json".
type shown struct {
	Running bool   `json:"running"`
	Note    string `json:"note,omitempty"`
	Problem string `json:"problem,omitempty"`
	api.VirtualCluster
	Queue []api.Queued `json:"queue,omitempty"`
}

// NewCmdShow returns "paictl vc show".
func NewCmdShow(f *cmdutil.Factory) *cobra.Command {
	opts := &ShowOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show one virtual cluster and the gangs that wait in it",
		Example: `  paictl vc show vision
  paictl vc show vision -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(f, &opts.Flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return showRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "wide", "json", "yaml")
	return cmd
}

func showRun(ctx context.Context, opts *ShowOptions) error {
	c, err := openJobs(opts.Factory, &opts.Flags)
	if err != nil {
		return err
	}
	s, err := look(ctx, c)
	if err != nil {
		return err
	}
	s.Items = append(s.Items, s.Deleted...) // to check which subjects still name one
	at := slices.IndexFunc(s.Items, func(v api.VirtualCluster) bool { return v.Name == opts.Name })
	if at < 0 {
		return unknown(opts.Name, s.Items)
	}
	one := shown{Running: s.Running, Note: s.Note, Problem: s.Problem, VirtualCluster: s.Items[at]}
	if s.Running {
		list, err := c.Waiting(ctx, opts.Name, 0)
		if err != nil {
			return err
		}
		for i := range list.Items {
			one.Queue = append(one.Queue, list.Items[i].Queued)
		}
	}
	if !opts.Output.Is("text") && !opts.Output.Is("wide") {
		return opts.Output.Write(opts.Factory.IO.Out, one, cmdutil.Table{})
	}
	tellState(opts.Factory.IO, s)
	return writeOne(opts.Factory.IO.Out, &opts.Output, &one, time.Now())
}

func unknown(name string, items []api.VirtualCluster) error {
	var names []string
	for _, v := range items {
		names = append(names, v.Name)
	}
	remedy := "there are: " + strings.Join(names, ", ")
	if near := strictyaml.Nearest(name, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	return hint.Errorf(remedy, "there is no virtual cluster %s", name)
}

func writeOne(w io.Writer, output *cmdutil.Output, v *shown, now time.Time) error {
	fields := [][2]string{
		{"owns", fmt.Sprintf("%s: %s", amounts(&v.VirtualCluster), cellsText(&v.VirtualCluster))},
		{"quota", quotaText(v.Quota)},
		{"policy", policyText(v.Policy)},
	}
	if v.Running {
		free := fmt.Sprint(v.Free)
		if levels := levelsText(v.FreeByLevel); levels != "" {
			free += ": " + levels
		}
		fields = append(fields, [][2]string{
			{"used", fmt.Sprint(v.Used)},
			{"opportunistic", fmt.Sprint(v.Opportunistic)},
			{"free", free},
			{"bad", fmt.Sprint(v.Bad)},
		}...)
		if c := v.CPU; c != nil {
			fields = append(fields, [2]string{"CPU cells", fmt.Sprintf("%d used, %d opportunistic, %d free, %d bad", c.Used, c.Opportunistic, c.Free, c.Bad)})
		}
		fields = append(fields, [][2]string{
			{"waiting", fmt.Sprintf("%s, %s", plural.Of(v.WaitingGangs, "gang"), plural.Of(v.WaitingPods, "pod"))},
		}...)
	}
	if _, err := fmt.Fprintln(w, terminal.Line(v.Name)); err != nil {
		return err
	}
	if err := writeFields(w, fields); err != nil || len(v.Queue) == 0 {
		return err
	}
	t := cmdutil.Table{Header: []string{"POSITION", "GANG", "STATE", "PRIORITY", "USER", "PODS", "GPUS", "CPU CELLS", "AGE", "REASON"}}
	cpu := slices.ContainsFunc(v.Queue, func(q api.Queued) bool { return q.CPUCells > 0 })
	if !cpu {
		t.Header = slices.DeleteFunc(t.Header, func(name string) bool { return name == "CPU CELLS" })
	}
	for _, q := range v.Queue {
		user := q.User
		if user == "" {
			user = "-"
		}
		row := []string{fmt.Sprint(q.PositionInVC), q.Group, q.State, fmt.Sprint(q.Priority), user, fmt.Sprint(q.Pods), fmt.Sprint(q.GPUs)}
		if cpu {
			row = append(row, fmt.Sprint(q.CPUCells))
		}
		reason := q.Reason
		if q.ShareOfGPUs > 0 {
			reason = strings.TrimPrefix(reason+"; it takes "+job.ShareText(q.Request), "; ")
		}
		t.Rows = append(t.Rows, append(row, cmdutil.Age(now.Sub(q.Since)), reason))
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return output.WriteTable(w, t)
}
