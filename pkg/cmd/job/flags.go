package job

import (
	"context"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/kube"
)

// Flags are the flags of all verbs on jobs of a cluster.
type Flags struct {
	Kube kube.Options
	// Server is the name or address of a cluster where the user has signed in.
	Server string
	// User is the owner of the jobs. If empty, it is the user who runs the program; see user.
	User string

	jobs *client.Jobs // of the first open
}

// completionTimeout keeps the shell from waiting for a cluster that doesn't answer.
const completionTimeout = 2 * time.Second

func (fl *Flags) add(f *cmdutil.Factory, cmd *cobra.Command) {
	fl.addConnection(f, cmd)
	cmd.Flags().StringVarP(&fl.User, "user", "u", "", "owner of the jobs (default: the signed-in user, or the setting user, or you)")
	_ = cmd.RegisterFlagCompletionFunc("user", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return fl.known(cmd.Context(), f, true, func(n job.Name) string { return n.User }), cobra.ShellCompDirectiveNoFileComp
	})
}

// addConnection adds the flags that choose a cluster.
func (fl *Flags) addConnection(f *cmdutil.Factory, cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &fl.Kube)
	connection.AddFlag(f, cmd, &fl.Server)
}

// open connects to the jobs of a cluster: by its server if the user has signed in, or by a kubeconfig. It doesn't send a request yet.
// A command has one connection, for any number of jobs.
func (fl *Flags) open(f *cmdutil.Factory) (*client.Jobs, error) {
	if fl.jobs != nil {
		return fl.jobs, nil
	}
	as, err := fl.unsigned(f) // the owner of new jobs with a kubeconfig
	if err != nil {
		f.Log.Debug("the user is not known", "error", err)
	}
	w, err := connection.Open(f, fl.Kube, fl.Server, as)
	if err != nil {
		return nil, err
	}
	fl.jobs = &client.Jobs{Server: w.Server, Name: w.User}
	return fl.jobs, nil
}

// user returns the owner of the jobs: --user, the user who has signed in, the setting, or the operating system's user.
func (fl *Flags) user(ctx context.Context, f *cmdutil.Factory, c *client.Jobs) (string, error) {
	if fl.User != "" {
		return fl.User, nil
	}
	if me, err := c.Me(ctx); me != "" || err != nil {
		return me, err
	}
	return fl.unsigned(f)
}

// maker returns the owner of a new job. Users who have signed in can't make jobs for others.
func (fl *Flags) maker(ctx context.Context, f *cmdutil.Factory, c *client.Jobs) (string, error) {
	me, err := c.Me(ctx)
	switch {
	case err != nil:
		return "", err
	case me == "":
		return fl.user(ctx, f, c)
	case fl.User != "" && fl.User != me:
		return "", hint.Errorf("remove --user, or use the cluster's kubeconfig: --kubeconfig FILE", "you are signed in as %s, and make no jobs for %s", me, fl.User)
	}
	return me, nil
}

// unsigned returns the owner of the jobs if the user has not signed in.
func (fl *Flags) unsigned(f *cmdutil.Factory) (string, error) {
	if fl.User != "" {
		return fl.User, nil
	}
	settings, err := f.Settings()
	if err != nil {
		return "", err
	}
	if name := settings.GetString("user"); name != "" {
		return name, nil
	}
	if name := f.Getenv("USER"); name != "" {
		return name, nil
	}
	me, err := user.Current()
	if err != nil {
		return "", cmdutil.Usagef("the user is not known: give --user")
	}
	return me.Username, nil
}

// find connects to the cluster and looks for a job.
func (fl *Flags) find(ctx context.Context, f *cmdutil.Factory, name string) (*client.Jobs, *job.Job, error) {
	if _, _, err := protocol.SplitName(name); err != nil {
		return nil, nil, &cmdutil.UsageError{Err: err}
	}
	c, err := fl.open(f)
	if err != nil {
		return nil, nil, err
	}
	owner, err := fl.user(ctx, f, c)
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Resolve(ctx, owner, name)
	return c, j, err
}

// completeJobs completes up to most names of jobs; 0 is any number.
func (fl *Flags) completeJobs(f *cmdutil.Factory, most int) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := fl.known(cmd.Context(), f, false, func(n job.Name) string { return n.Name })
		return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeVC completes names of virtual clusters.
func (fl *Flags) completeVC(f *cmdutil.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		c, err := fl.open(f)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := c.VirtualClusters(ctx)
		if err != nil {
			f.Log.DebugContext(ctx, "complete names of virtual clusters", "error", err)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, v := range all.Items {
			out = append(out, v.Name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRoles completes names of task roles of the job that is the first argument.
func (fl *Flags) completeRoles(f *cmdutil.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		_, j, err := fl.find(ctx, f, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return j.RoleNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

// known lists the results of a function for names of live jobs, once each. It returns nil if the cluster doesn't answer soon. The jobs are
// the user's, or all.
func (fl *Flags) known(ctx context.Context, f *cmdutil.Factory, all bool, of func(job.Name) string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := fl.open(f)
	if err != nil {
		return nil
	}
	owner := ""
	if !all {
		if owner, err = fl.user(ctx, f, c); err != nil {
			return nil
		}
	}
	list, err := c.Known(ctx, owner)
	if err != nil {
		f.Log.DebugContext(ctx, "complete names of jobs", "error", err)
		return nil
	}
	var out []string
	for _, one := range list {
		if name := of(one); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
