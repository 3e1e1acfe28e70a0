package group

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// PutOptions are the options of "paictl group add" and "paictl group set".
type PutOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Name       string
	Make       bool
	// Change holds functions that make the changes that the flags request.
	Change []func(*v1.GroupSpec)
}

// list describes the three flags for one list of a group. They replace the list, add entries, and remove entries.
type list struct {
	flag, usage string
	replace     func(*v1.GroupSpec, []string) error
	add, remove func(*v1.GroupSpec, []string) error
}

const grantUsage = "virtual cluster, with =OPTIONS: see-jobs, host-network, or the highest priority (oppo, test, prod, crit), with commas between"

// newCmdPut returns "paictl group add" or "paictl group set".
func newCmdPut(f *cmdutil.Factory, adds bool) *cobra.Command {
	opts := &PutOptions{Factory: f, Make: adds}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change what a group grants",
		Long: `Changes only the properties that you name: --vc, --storage, --page and --external replace the group's whole list; the same
flags with the prefix add- or remove- add entries to the list or remove them.

` + options,
		Example: `  paictl group set vision --add-vc nlp=crit,host-network --remove-storage old-data
  paictl group set staff --administrator=false`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: user.CompleteGroups(f, &opts.Connection, 1),
	}
	if adds {
		cmd.Use, cmd.Short, cmd.ValidArgsFunction = "add NAME", "Add a group", cobra.NoFileCompletions
		cmd.Long = "Adds a group without members: add people to it with \"paictl group add-member\".\n\n" + options
		cmd.Example = `  paictl group add vision --vc vision=see-jobs --vc default --storage datasets --storage shared
  paictl group add operators --administrator --description "the people on call"
  paictl group add staff --all-vcs --external lab/gpu-users`
	}
	var description string
	var administrator, allVCs bool
	fl := cmd.Flags()
	fl.StringVar(&description, "description", "", "one line about the group")
	fl.BoolVar(&administrator, "administrator", false, "allow members everything except the use of storages")
	fl.BoolVar(&allVCs, "all-vcs", false, "allow members to submit to all virtual clusters")
	values := map[string]*[]string{}
	add := func(name, usage string) {
		values[name] = &[]string{}
		fl.StringArrayVar(values[name], name, nil, usage)
	}
	for _, l := range lists {
		add(l.flag, l.usage+" (repeatable)")
		if !adds {
			add("add-"+l.flag, "add one "+l.flag+" (repeatable)")
			add("remove-"+l.flag, "remove one "+l.flag+", by its name (repeatable)")
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts.Name = args[0]
		if fl.Changed("description") {
			opts.Change = append(opts.Change, func(g *v1.GroupSpec) { g.Description = description })
		}
		if fl.Changed("administrator") {
			opts.Change = append(opts.Change, func(g *v1.GroupSpec) { g.Administrator = administrator })
		}
		if fl.Changed("all-vcs") {
			opts.Change = append(opts.Change, func(g *v1.GroupSpec) { g.AllVirtualClusters = allVCs })
		}
		for _, l := range lists {
			for _, way := range []struct {
				name string
				do   func(*v1.GroupSpec, []string) error
			}{{l.flag, l.replace}, {"remove-" + l.flag, l.remove}, {"add-" + l.flag, l.add}} {
				name, do := way.name, way.do
				if values[name] == nil || !fl.Changed(name) {
					continue
				}
				given := *values[name]
				if err := do(&v1.GroupSpec{}, given); err != nil { // refuse a wrong value before any request
					return cmdutil.Usagef("--%s: %w", name, err)
				}
				opts.Change = append(opts.Change, func(g *v1.GroupSpec) { _ = do(g, given) })
			}
		}
		if !adds && len(opts.Change) == 0 {
			return cmdutil.Usagef("nothing to change: give a flag (see %s --help)", cmd.CommandPath())
		}
		return putRun(cmd.Context(), opts)
	}
	_ = cmd.RegisterFlagCompletionFunc("page", cobra.FixedCompletions(pages, cobra.ShellCompDirectiveNoFileComp))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

const options = `--vc NAME=OPTIONS grants a virtual cluster. Options, with commas between:
  see-jobs      members see each other's jobs there
  host-network  jobs may use the machines' network
  oppo, test, prod or crit
                the highest priority that jobs may have; prod without any

The first --storage is the group's default storage. Pages are monitoring, alerts and monitoring-write (silencing alerts).
--external PROVIDER/GROUP makes all members of a group at a provider of sign-ins members of this group.`

var pages = []string{rules.PageMonitoring, rules.PageAlerts, rules.PageMonitoringWrite}

var lists = []list{
	{
		flag: "vc", usage: grantUsage,
		replace: func(g *v1.GroupSpec, v []string) error { g.VirtualClusters = nil; return addVCs(g, v) },
		add:     addVCs,
		remove: func(g *v1.GroupSpec, v []string) error {
			g.VirtualClusters = slices.DeleteFunc(g.VirtualClusters, func(vc v1.VCGrant) bool { return slices.Contains(v, vc.Name) })
			return nil
		},
	},
	names("storage", "storage", func(g *v1.GroupSpec) *[]string { return &g.Storages }, nil),
	names("page", "web page", func(g *v1.GroupSpec) *[]string { return &g.Pages }, pages),
	{
		flag: "external", usage: "group of a provider of sign-ins, as PROVIDER/GROUP",
		replace: func(g *v1.GroupSpec, v []string) error { g.External = nil; return addExternal(g, v) },
		add:     addExternal,
		remove: func(g *v1.GroupSpec, v []string) error {
			g.External = slices.DeleteFunc(g.External, func(e v1.ExternalGroup) bool { return slices.Contains(v, e.Provider+"/"+e.Name) })
			return nil
		},
	},
}

// names returns the description of the flags for a list of names. If known is not nil, only these names are valid.
func names(flag, usage string, of func(*v1.GroupSpec) *[]string, known []string) list {
	add := func(g *v1.GroupSpec, v []string) error {
		for _, name := range v {
			if name == "" || known != nil && !slices.Contains(known, name) {
				return fmt.Errorf("%q is not one of %s", name, strings.Join(known, ", "))
			}
			if !slices.Contains(*of(g), name) {
				*of(g) = append(*of(g), name)
			}
		}
		return nil
	}
	return list{
		flag: flag, usage: usage, add: add,
		replace: func(g *v1.GroupSpec, v []string) error { *of(g) = nil; return add(g, v) },
		remove: func(g *v1.GroupSpec, v []string) error {
			*of(g) = slices.DeleteFunc(*of(g), func(name string) bool { return slices.Contains(v, name) })
			return nil
		},
	}
}

// addVCs adds grants for virtual clusters to a group. A new grant replaces an old grant for the same virtual cluster.
func addVCs(g *v1.GroupSpec, values []string) error {
	for _, text := range values {
		grant, err := parseGrant(text)
		if err != nil {
			return err
		}
		g.VirtualClusters = slices.DeleteFunc(g.VirtualClusters, func(vc v1.VCGrant) bool { return vc.Name == grant.Name })
		g.VirtualClusters = append(g.VirtualClusters, grant)
	}
	return nil
}

func parseGrant(text string) (v1.VCGrant, error) {
	name, options, with := strings.Cut(text, "=")
	g := v1.VCGrant{Name: name}
	if name == "" {
		return g, fmt.Errorf("%q names no virtual cluster", text)
	}
	if !with {
		return g, nil
	}
	for _, o := range strings.Split(options, ",") {
		switch o {
		case "see-jobs":
			g.SeeJobs = true
		case "host-network":
			g.HostNetwork = true
		case "oppo", "test", "prod", "crit":
			if g.MaxPriority != "" {
				return g, fmt.Errorf("%q names two priorities", text)
			}
			g.MaxPriority = o
		default:
			return g, fmt.Errorf("%q is not one of see-jobs, host-network, oppo, test, prod, crit", o)
		}
	}
	return g, nil
}

func addExternal(g *v1.GroupSpec, values []string) error {
	for _, text := range values {
		provider, name, ok := strings.Cut(text, "/")
		if !ok || provider == "" || name == "" {
			return fmt.Errorf("%q is not PROVIDER/GROUP", text)
		}
		if e := (v1.ExternalGroup{Provider: provider, Name: name}); !slices.Contains(g.External, e) {
			g.External = append(g.External, e)
		}
	}
	return nil
}

func putRun(ctx context.Context, opts *PutOptions) error {
	p, err := user.Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	g, err := p.ChangeGroup(ctx, opts.Name, opts.Make, func(g *v1.GroupSpec) error {
		for _, change := range opts.Change {
			change(g)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return write(opts.Factory, &opts.Output, g)
}
