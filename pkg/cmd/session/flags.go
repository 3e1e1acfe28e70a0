package session

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/phases"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
)

// Flags are the flags that all commands on machines share.
type Flags struct {
	Dir       string
	Limit     []string
	Parallel  int
	AcceptNew bool
	NoPeers   bool
	Bundle    string
	Yes       bool

	command, verb string
	up            string // see Session.UpCommand
	factory       *cmdutil.Factory
	again         func(args []string) string
}

// AddConfig adds -p. The default comes from PAICTL_CONFIG or from paictl's settings.
func (fl *Flags) AddConfig(cmd *cobra.Command, f *cmdutil.Factory) {
	fl.factory = f
	cmd.Flags().StringVarP(&fl.Dir, "config-path", "p", ".", "folder with the configuration (setting: config, PAICTL_CONFIG)")
	_ = cmd.MarkFlagDirname("config-path")
	before := cmd.PreRunE
	cmd.PreRunE = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		return fl.complete(c, f, args)
	}
}

// AddConnection adds the flags that determine how to connect to machines.
func (fl *Flags) AddConnection(cmd *cobra.Command) {
	cmd.Flags().IntVar(&fl.Parallel, "parallel", 64, "how many hosts to work on at the same time")
	cmd.Flags().BoolVar(&fl.AcceptNew, "accept-new-host-keys", false, "accept and remember the keys of hosts not seen before; changed keys are still refused")
}

// AddPeers adds --no-peers, for commands that copy files of the bundle to machines.
func (fl *Flags) AddPeers(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&fl.NoPeers, "no-peers", false, "send every file from here to each machine, not from machine to machine")
}

// AddLimit adds --limit, which selects machines.
func (fl *Flags) AddLimit(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&fl.Limit, "limit", nil, "only these machines, by host name or address, separated by commas")
	_ = cmd.RegisterFlagCompletionFunc("limit", fl.CompleteHosts)
}

// AddBundle adds --bundle, which selects the folder of the bundle.
func (fl *Flags) AddBundle(cmd *cobra.Command) {
	cmd.Flags().StringVar(&fl.Bundle, "bundle", "", "folder of the bundle (default: the configuration's, or "+bundle.DefaultDir+")")
	_ = cmd.MarkFlagDirname("bundle")
}

// AddYes adds --yes. usage is the help text of the flag.
func (fl *Flags) AddYes(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVarP(&fl.Yes, "yes", "y", false, usage)
}

// complete takes values without a flag from the settings, and records the command line. The summary of a run contains this command line, so that
// the user can repeat the command.
func (fl *Flags) complete(cmd *cobra.Command, f *cmdutil.Factory, args []string) error {
	settings, err := f.Settings()
	if err != nil {
		return err
	}
	if dir := settings.GetString("config"); dir != "" && !cmd.Flags().Changed("config-path") {
		fl.Dir = dir
	}
	fl.up = "paictl cluster up -p " + hint.Quote(fl.Dir)
	if fl.Bundle != "" {
		fl.up += " --bundle " + hint.Quote(fl.Bundle)
	} else {
		fl.Bundle = settings.GetString("bundle")
	}
	if fl.NoPeers {
		fl.up += " --no-peers"
	}
	if fl.Parallel < 0 {
		return cmdutil.Usagef("--parallel %d: give a number of hosts, at least 1", fl.Parallel)
	}
	fl.again = func(args []string) string { return Typed(cmd, args, "limit") }
	fl.command, fl.verb = fl.again(args), cmd.CommandPath()
	return nil
}

// Typed returns the command line as a user would type it again. It omits the flags in without.
func Typed(cmd *cobra.Command, args []string, without ...string) string {
	words := append([]string{cmd.CommandPath()}, quoteAll(args)...)
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if slices.Contains(without, fl.Name) {
			return
		}
		name := "--" + fl.Name
		if fl.Shorthand != "" {
			name = "-" + fl.Shorthand
		}
		switch {
		case fl.Value.Type() == "bool" && fl.Value.String() == "true":
			words = append(words, name)
		case fl.Value.Type() == "bool":
			words = append(words, "--"+fl.Name+"=false")
		default:
			value := fl.Value.String()
			if s, ok := fl.Value.(pflag.SliceValue); ok {
				value = strings.Join(s.GetSlice(), ",")
			}
			words = append(words, name, hint.Quote(value))
		}
	})
	return strings.Join(words, " ")
}

func quoteAll(ss []string) []string {
	out := make([]string, len(ss))
	for i, s := range ss {
		out[i] = hint.Quote(s)
	}
	return out
}

// bundleDir returns the folder of the bundle: from the flag or the setting, otherwise from the configuration, otherwise the default folder.
func (fl *Flags) bundleDir(c *config.Cluster) string {
	switch {
	case fl.Bundle != "":
		return fl.Bundle
	case c.Kubernetes.Kubernetes.Bundle != "":
		return c.Kubernetes.Kubernetes.Bundle
	}
	return bundle.DefaultDir
}

// newBundle returns the absolute path of the bundle that the flag selects, if the configuration contains a different path. Otherwise it returns
// "", because the configuration needn't change.
func (fl *Flags) newBundle(c *config.Cluster) string {
	named := c.Kubernetes.Kubernetes.Bundle
	if fl.Bundle == "" || named == "" {
		return ""
	}
	given, err := filepath.Abs(fl.Bundle)
	if had, herr := filepath.Abs(named); err != nil || herr == nil && had == given {
		return ""
	}
	return given
}

// CompleteHosts completes the names of hosts in the layout, also within a comma-separated list.
func (fl *Flags) CompleteHosts(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	dir := fl.Dir
	if settings, err := fl.factory.Settings(); err == nil && !cmd.Flags().Changed("config-path") && settings.GetString("config") != "" {
		dir = settings.GetString("config")
	}
	c, err := config.Load(filepath.Clean(dir))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, m := range c.Layout.MachineList {
		names = append(names, m.Hostname)
	}
	return listCompletions(names, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompletePhases completes the names of the phases of "cluster up".
func CompletePhases(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return listCompletions(phases.Names(), toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// listCompletions completes the last name of a comma-separated list. It offers only names that the list doesn't contain yet.
func listCompletions(names []string, toComplete string) []string {
	head, tail := "", toComplete
	if i := strings.LastIndex(toComplete, ","); i >= 0 {
		head, tail = toComplete[:i+1], toComplete[i+1:]
	}
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, tail) && !strings.Contains(","+head, ","+n+",") {
			out = append(out, head+n)
		}
	}
	return out
}
