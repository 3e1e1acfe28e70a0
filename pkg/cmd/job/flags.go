package job

import (
	"context"
	"os/user"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/kube"
)

// Flags are the flags that all commands on jobs of a cluster have.
type Flags struct {
	Kube kube.Options
	// Server is the name or address of a cluster where the user is signed in.
	Server string
	// User is the owner of the jobs. If it is empty, the method user determines the owner.
	User string

	jobs *client.Jobs // set by the first open
}

func (fl *Flags) add(f *cmdutil.Factory, cmd *cobra.Command) {
	fl.addConnection(f, cmd)
	cmd.Flags().StringVarP(&fl.User, "user", "u", "", "owner of the jobs (default: the signed-in user, or the setting user, or you)")
	_ = cmd.RegisterFlagCompletionFunc("user", fl.completeOwners(f))
}

// addConnection adds the flags that choose a cluster.
func (fl *Flags) addConnection(f *cmdutil.Factory, cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &fl.Kube)
	connection.AddFlag(f, cmd, &fl.Server)
}

// open connects to the jobs of a cluster: through its server if the user has signed in, otherwise with a kubeconfig. It sends no request yet.
// Later calls return the same connection.
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

// user returns the owner of the jobs: the value of --user, the user who has signed in, or the result of unsigned, in this order.
func (fl *Flags) user(ctx context.Context, f *cmdutil.Factory, c *client.Jobs) (string, error) {
	if fl.User != "" {
		return fl.User, nil
	}
	if me, err := c.Me(ctx); me != "" || err != nil {
		return me, err
	}
	return fl.unsigned(f)
}

// maker returns the owner of a new job. It returns an error if a user who is signed in wants to create a job for another user.
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

// unsigned returns the owner of the jobs if the user isn't signed in: the value of --user, the setting user, $USER, or the user of the operating
// system.
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

// find connects to the cluster, and returns the job with the given name.
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

// completeJobs completes up to most names of jobs. If most is 0, it completes any number of names; if most is cmdutil.FlagValue, it completes
// the value of a flag.
func (fl *Flags) completeJobs(f *cmdutil.Factory, most int) cobra.CompletionFunc {
	return f.Complete(most, func(ctx context.Context, _ []string) ([]string, error) {
		return fl.known(ctx, f, false, func(n job.Name) string { return n.Name })
	})
}

// completeOwners completes the value of a flag with names of users who have live jobs.
func (fl *Flags) completeOwners(f *cmdutil.Factory) cobra.CompletionFunc {
	return f.Complete(cmdutil.FlagValue, func(ctx context.Context, _ []string) ([]string, error) {
		return fl.known(ctx, f, true, func(n job.Name) string { return n.User })
	})
}

// completeVC completes the value of a flag with names of virtual clusters.
func (fl *Flags) completeVC(f *cmdutil.Factory) cobra.CompletionFunc {
	return f.Complete(cmdutil.FlagValue, func(ctx context.Context, _ []string) (out []string, _ error) {
		c, err := fl.open(f)
		if err != nil {
			return nil, err
		}
		all, err := c.VirtualClusters(ctx)
		if err != nil {
			return nil, err
		}
		for i := range all.Items {
			out = append(out, all.Items[i].Name)
		}
		return out, nil
	})
}

// completeRoles completes the value of a flag with names of task roles. The job is the first argument of the command.
func (fl *Flags) completeRoles(f *cmdutil.Factory) cobra.CompletionFunc {
	return f.Complete(cmdutil.FlagValue, func(ctx context.Context, args []string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		_, j, err := fl.find(ctx, f, args[0])
		if err != nil {
			return nil, err
		}
		return j.RoleNames(), nil
	})
}

// known calls the function of for the name of each live job, and returns its results without duplicates. If all is false, it considers only the
// jobs of the user.
func (fl *Flags) known(ctx context.Context, f *cmdutil.Factory, all bool, of func(job.Name) string) (out []string, err error) {
	c, err := fl.open(f)
	if err != nil {
		return nil, err
	}
	owner := ""
	if !all {
		if owner, err = fl.user(ctx, f, c); err != nil {
			return nil, err
		}
	}
	list, err := c.Known(ctx, owner)
	for _, one := range list {
		if name := of(one); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, err
}
