package vc

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// SetOptions are the options of "paictl vc set".
type SetOptions struct {
	Factory *cmdutil.Factory
	Flags   connection.Flags
	Output  cmdutil.Output
	// Requests are the requested changes, one for each virtual cluster. They come from the flags and the file.
	Requests []vc.Request
	Message  string
	DryRun   bool
	Yes      bool
	// Force allows a change even if jobs run in a virtual cluster that is deleted or loses all cells. These jobs continue to run.
	Force bool
	Wait  time.Duration
}

// setFlags holds the values of the flags before they are parsed.
type setFlags struct {
	cells, pin, unpin    []string
	perUser, perGroup    int
	users, groups        []string
	from, takeFrom       string
	policy               string
	delete               bool
	perUserSet, groupSet bool
}

// NewCmdSet returns "paictl vc set".
func NewCmdSet(f *cmdutil.Factory) *cobra.Command {
	opts, flags := &SetOptions{Factory: f}, &setFlags{}
	cmd := &cobra.Command{
		Use:   "set [NAME]",
		Short: "Create, change or remove a virtual cluster without a restart",
		Long: `Changes a virtual cluster, or creates one, in the configuration that the cluster stores. Only what you
name changes: --cells 8x-a100-NODE=3 does not change cells of other types, and N=0 removes a type.

The change is checked, and the running scheduler says which gangs would lose their guarantee. Then it is
pushed as a new revision of the configuration, whose file keeps its comments, and takes effect at once:
nothing is restarted and no pod is killed. --dry-run stops before the push.

--take-from moves cells in one step: the other virtual cluster loses the cells that NAME gets, and gets
those that NAME loses. While no virtual cluster is defined, one called default owns everything; the first
change adds it to the file, and the others get their cells from it.

A virtual cluster with jobs is not removed and keeps at least one cell; the error names the jobs. With
--force, running jobs continue without a guarantee, and waiting jobs never start; "vc list" shows such a
virtual cluster as deleted until they are gone.

After "paictl login" administrators change virtual clusters through the platform's server; with
--kubeconfig or --context paictl changes them itself. Checks and effects are the same, and the audit has both.

--from FILE reads a whole definition ("-" is stdin): virtualCells, pinnedCells and quota of NAME; or,
without NAME, several virtual clusters below the key virtualClusters. Virtual clusters that the file
doesn't name stay.`,
		Example: `  paictl vc set vision --cells 8x-a100-NODE=3,4x-v100-NODE=2
  paictl vc set vision --cells 8x-a100-NODE=4 --take-from nlp --dry-run
  paictl vc set vision --quota-per-user 8 --quota-user alice=16
  paictl vc set vision --quota-user alice=default
  paictl vc set nlp --policy fewer-kills
  paictl vc set --from teams.yaml --yes -m "the new quarter"
  paictl vc set vision --delete --take-from nlp`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeNames(f, &opts.Flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.perUserSet, flags.groupSet = cmd.Flags().Changed("quota-per-user"), cmd.Flags().Changed("quota-per-group")
			if err := opts.complete(cmd, flags, args); err != nil {
				return err
			}
			return setRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddFlags(f, cmd)
	flags.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&opts.Message, "message", "m", "", "reason, recorded in the history")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "check, show what would change, and change nothing")
	fl.BoolVar(&opts.Force, "force", false, "also if a virtual cluster with jobs is removed or loses all its cells")
	fl.BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	fl.DurationVar(&opts.Wait, "wait", time.Minute, "wait this long until the scheduler uses it; 0 doesn't wait")
	_ = cmd.RegisterFlagCompletionFunc("cells", completeCells(f, &opts.Flags))
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(cell.PolicyCompletions(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("take-from", completeNames(f, &opts.Flags, cmdutil.FlagValue))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func (s *setFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&s.cells, "cells", nil, "TYPE=N,...: it owns N cells of the type; 0 removes the type")
	fl.StringSliceVar(&s.pin, "pin", nil, "ID,...: it also owns these pinned cells")
	fl.StringSliceVar(&s.unpin, "unpin", nil, "ID,...: it no longer owns these pinned cells")
	fl.IntVar(&s.perUser, "quota-per-user", 0, "GPUs that each user may hold with a guarantee; 0 means no limit")
	fl.IntVar(&s.perGroup, "quota-per-group", 0, "GPUs that each group of users may hold with a guarantee; 0 means no limit")
	fl.StringSliceVar(&s.users, "quota-user", nil, "NAME=N,...: own quota for these users; NAME=default removes it")
	fl.StringSliceVar(&s.groups, "quota-group", nil, "NAME=N,...: own quota for these groups; NAME=default removes it")
	fl.StringVar(&s.policy, "policy", "", "how its jobs preempt others and are preempted: "+strings.Join(cell.PolicyNames(), ", "))
	fl.StringVar(&s.from, "from", "", "file with one or several definitions; - is stdin")
	fl.StringVar(&s.takeFrom, "take-from", "", "virtual cluster that the added cells come from, and that gets the removed ones")
	fl.BoolVar(&s.delete, "delete", false, "remove the virtual cluster if it has no jobs (see --force)")
}

// complete converts the flags and the file to requests.
func (opts *SetOptions) complete(cmd *cobra.Command, flags *setFlags, args []string) error {
	help := cmd.CommandPath() + " --help"
	switch {
	case len(args) == 0 && flags.from == "":
		return cmdutil.Usagef("name a virtual cluster, or give a file with --from (see %s)", help)
	case opts.Wait < 0:
		return cmdutil.Usagef("--wait %s: give a duration, or 0 for no wait", opts.Wait)
	case len(opts.Message) > store.MaxMessage:
		return cmdutil.Usagef("the message is longer than %d bytes (see %s)", store.MaxMessage, help)
	}
	r, given, err := flags.request(help)
	if err != nil {
		return err
	}
	if flags.delete && (given || flags.from != "") {
		return cmdutil.Usagef("use --delete alone, or with --take-from (see %s)", help)
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

// define converts the definitions in a file to requests, combined with the request of the flags.
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
		return cmdutil.Usagef("use a file with several virtual clusters without other changes (see %s)", help)
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
