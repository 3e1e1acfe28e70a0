package job

import (
	"context"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/protocol"
)

// Flags are those of all verbs on jobs of a cluster.
type Flags struct {
	Kube kube.Options
	// User is whose jobs are meant. Empty is whoever runs the program; see user.
	User string
}

// completionTimeout keeps the shell from waiting for a cluster that doesn't answer.
const completionTimeout = 2 * time.Second

func (fl *Flags) add(f *cmdutil.Factory, cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &fl.Kube)
	cmd.Flags().StringVarP(&fl.User, "user", "u", "", "owner of the jobs (default: the setting user, else you)")
	_ = cmd.RegisterFlagCompletionFunc("user", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return fl.known(cmd.Context(), f, "", func(w *v1.Framework) string { return w.Labels[v1.LabelUser] }), cobra.ShellCompDirectiveNoFileComp
	})
}

// user is whose jobs are meant: --user, the setting, or the operating system's user.
func (fl *Flags) user(f *cmdutil.Factory) (string, error) {
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
func (fl *Flags) find(ctx context.Context, f *cmdutil.Factory, name string) (*job.Client, *job.Job, error) {
	owner, err := fl.user(f)
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := protocol.SplitName(name); err != nil {
		return nil, nil, &cmdutil.UsageError{Err: err}
	}
	c, err := job.Open(fl.Kube)
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
		names := fl.known(cmd.Context(), f, fl.selector(f), func(w *v1.Framework) string { return w.Annotations[v1.AnnotationJobName] })
		return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeVC completes names of virtual clusters.
func (fl *Flags) completeVC(f *cmdutil.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		c, err := job.Open(fl.Kube)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := c.Scheduler.VirtualClusters(ctx)
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

// selector is the label selector of the user's jobs.
func (fl *Flags) selector(f *cmdutil.Factory) string {
	owner, err := fl.user(f)
	if err != nil {
		return ""
	}
	return v1.LabelUser + "=" + owner
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

// known lists what a function finds in live jobs, once each; nothing where the cluster doesn't answer
// soon.
func (fl *Flags) known(ctx context.Context, f *cmdutil.Factory, selector string, of func(*v1.Framework) string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := job.Open(fl.Kube)
	if err != nil {
		return nil
	}
	list, err := c.Frameworks.List(ctx, selector)
	if err != nil {
		f.Log.DebugContext(ctx, "complete names of jobs", "error", err)
		return nil
	}
	var out []string
	for i := range list {
		if name := of(&list[i]); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
