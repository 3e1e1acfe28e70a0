package vc

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// SetOptions are those of "paictl vc set".
type SetOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
	// Requests are what the flags and the file mean, one for each virtual cluster.
	Requests []vc.Request
	Message  string
	DryRun   bool
	Yes      bool
	// Force lets jobs inside a virtual cluster that ends, or keeps nothing, go on without it.
	Force bool
	Wait  time.Duration
}

// setFlags are the flags as they were given.
type setFlags struct {
	cells, pin, unpin    []string
	perUser, perGroup    int
	users, groups        []string
	from, takeFrom       string
	policy               string
	delete               bool
	perUserSet, groupSet bool
}

// NewCmdSet returns "paictl vc set". runF replaces the run in tests.
func NewCmdSet(f *cmdutil.Factory, runF func(context.Context, *SetOptions) error) *cobra.Command {
	opts, flags := &SetOptions{Factory: f}, &setFlags{}
	cmd := &cobra.Command{
		Use:   "set [NAME]",
		Short: "Make, change or remove a virtual cluster, while everything runs",
		Long: `Changes a virtual cluster, or makes a new one, in the configuration that the cluster holds. What isn't
named stays as it is: --cells 8x-a100-NODE=3 leaves cells of other types alone, and N=0 takes a type away.

The change is checked, and the running scheduler says which gangs would lose their guarantee. Then it is
pushed as a new revision of the configuration, whose file keeps its comments, and takes effect at once:
nothing is restarted and no pod is killed for it. --dry-run stops before.

--take-from moves cells in one step: the other virtual cluster gives what NAME gets, and gets what NAME
loses. While no virtual cluster is defined, one called default owns everything; the first change writes
it down, and it gives what the others get.

A virtual cluster with jobs inside is not removed, nor are all its cells taken: the jobs are named. With
--force what runs goes on without a guarantee, and what waits never starts; "vc list" shows such a virtual
cluster as deleted until they are gone.

--from FILE reads a whole definition ("-" is stdin): virtualCells, pinnedCells and quota of NAME; or,
without NAME, several below the key virtualClusters. Those that the file doesn't name stay.`,
		Example: `  paictl vc set vision --cells 8x-a100-NODE=3,4x-v100-NODE=2
  paictl vc set vision --cells 8x-a100-NODE=4 --take-from nlp --dry-run
  paictl vc set vision --quota-per-user 8 --quota-user alice=16
  paictl vc set vision --quota-user alice=default
  paictl vc set nlp --policy fewer-kills
  paictl vc set --from teams.yaml --yes -m "the new quarter"
  paictl vc set vision --delete --take-from nlp`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeNames(f, &opts.Kube),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.perUserSet, flags.groupSet = cmd.Flags().Changed("quota-per-user"), cmd.Flags().Changed("quota-per-group")
			if err := opts.complete(cmd, flags, args); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return setRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	flags.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&opts.Message, "message", "m", "", "why, for the history")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "check, show what would change, and change nothing")
	fl.BoolVar(&opts.Force, "force", false, "also where jobs are inside a virtual cluster that ends or keeps nothing")
	fl.BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	fl.DurationVar(&opts.Wait, "wait", time.Minute, "wait so long until the scheduler uses it; 0 doesn't wait")
	_ = cmd.RegisterFlagCompletionFunc("cells", completeCells(f, &opts.Kube))
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(cell.PolicyCompletions(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("take-from", completeName(f, &opts.Kube))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func (s *setFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&s.cells, "cells", nil, "TYPE=N,...: it owns N cells of the type; 0 takes the type away")
	fl.StringSliceVar(&s.pin, "pin", nil, "ID,...: it owns these pinned cells, too")
	fl.StringSliceVar(&s.unpin, "unpin", nil, "ID,...: it no longer owns these pinned cells")
	fl.IntVar(&s.perUser, "quota-per-user", 0, "GPUs that each user may hold with a guarantee; 0 is no limit")
	fl.IntVar(&s.perGroup, "quota-per-group", 0, "GPUs that each group of users may hold with a guarantee; 0 is no limit")
	fl.StringSliceVar(&s.users, "quota-user", nil, "NAME=N,...: another quota for these users; NAME=default takes it back")
	fl.StringSliceVar(&s.groups, "quota-group", nil, "NAME=N,...: another quota for these groups; NAME=default takes it back")
	fl.StringVar(&s.policy, "policy", "", "what its jobs give up for others, and take: "+strings.Join(cell.PolicyNames(), ", "))
	fl.StringVar(&s.from, "from", "", "file with a definition, or with several; - is stdin")
	fl.StringVar(&s.takeFrom, "take-from", "", "virtual cluster that gives what this one gets, and gets what it loses")
	fl.BoolVar(&s.delete, "delete", false, "remove the virtual cluster, if no job is inside (see --force)")
}

// complete turns flags into requests.
func (opts *SetOptions) complete(cmd *cobra.Command, flags *setFlags, args []string) error {
	help := cmd.CommandPath() + " --help"
	switch {
	case len(args) == 0 && flags.from == "":
		return cmdutil.Usagef("name a virtual cluster, or give a file with --from (see %s)", help)
	case opts.Wait < 0:
		return cmdutil.Usagef("--wait %s: give a duration, or 0 not to wait", opts.Wait)
	case len(opts.Message) > store.MaxMessage:
		return cmdutil.Usagef("the message is longer than %d bytes (see %s)", store.MaxMessage, help)
	}
	r, given, err := flags.request(help)
	if err != nil {
		return err
	}
	if flags.delete && (given || flags.from != "") {
		return cmdutil.Usagef("--delete stands alone, or with --take-from (see %s)", help)
	}
	if flags.from == "" {
		if !given && !flags.delete {
			return cmdutil.Usagef("say what to change: --cells, --pin, --quota-..., --policy, --from or --delete (see %s)", help)
		}
		r.Name = args[0]
		opts.Requests = []vc.Request{r}
		return nil
	}
	defined, err := readFile(opts.Factory, flags.from)
	if err != nil {
		return err
	}
	return opts.define(defined, r, given, args, help)
}

// define makes requests of a file's definitions.
func (opts *SetOptions) define(defined map[string]vc.Definition, r vc.Request, given bool, args []string, help string) error {
	one, single := defined[""]
	switch {
	case single && len(args) == 0:
		return cmdutil.Usagef("the file defines one virtual cluster: give its name (see %s)", help)
	case single:
		r.Name, r.Define = args[0], &one
		opts.Requests = []vc.Request{r}
		return nil
	case given || r.TakeFrom != "":
		return cmdutil.Usagef("a file with several virtual clusters stands alone (see %s)", help)
	}
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		if len(args) > 0 && args[0] != name {
			continue
		}
		d := defined[name]
		opts.Requests = append(opts.Requests, vc.Request{Name: name, Define: &d})
	}
	if len(opts.Requests) == 0 {
		return cmdutil.Usagef("the file defines no virtual cluster %s", slices.Concat(args, []string{"at all"})[0])
	}
	return nil
}

func readFile(f *cmdutil.Factory, name string) (map[string]vc.Definition, error) {
	if name == "-" {
		data, err := readAll(f.IO.In)
		if err != nil {
			return nil, err
		}
		return vc.ParseFile("stdin", data)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return vc.ParseFile(name, data)
}
