package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/progress"
	"github.com/openpai/paictl/pkg/version"
)

// UpgradeOptions are the options of "paictl cluster upgrade".
type UpgradeOptions struct {
	Factory       *cmdutil.Factory
	Flags         session.Flags
	Output        cmdutil.Output
	To            string
	AtOnce        string
	Jobs          string
	WithoutBackup bool
	DryRun        bool
	Upgrade       cluster.UpgradeOptions
}

// backupAge is the maximum age of the last backup of the cluster when an upgrade begins.
const backupAge = 24 * time.Hour

// NewCmdUpgrade returns "paictl cluster upgrade". Tests pass runF, which replaces the function that runs the command.
func NewCmdUpgrade(f *cmdutil.Factory, runF func(context.Context, *UpgradeOptions) error) *cobra.Command {
	opts := &UpgradeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring a running cluster to the Kubernetes of another bundle",
		Long: `Brings a running cluster to the release of Kubernetes, etcd, containerd and the network plugin of another
bundle: another patch of the same minor release, or the next minor release. To go back to an earlier patch
release, name it with --to.

First all images are copied to all machines. Then the control plane follows, one machine after the other;
if a new control plane doesn't start on a machine, its former one is restored, and nothing else is changed.
Then the machines follow: each is cordoned and drained, its kubelet and containerd are replaced and
checked, and it is uncordoned; machines without jobs first. Programs of the control plane are never older
than those of the other machines. The release is written into kubernetes-configuration.yaml.

--job-policy decides how to treat jobs on a machine: "wait" waits until they have finished, at most --max-wait,
and leaves the machine as it is if they haven't; "requeue" evicts their tasks, which begin again elsewhere;
"stop" stops the jobs. While it waits, no new jobs begin on that machine.

It refuses to begin if part of the control plane doesn't work, if the last backup of the cluster is older
than a day, or if someone uses an API that the new release doesn't have. If it fails or is interrupted at any
point, run it again: until then the cluster works with machines of both releases.`,
		Example: `  paictl cluster upgrade -p ./cluster --bundle ./bundle-1.36.4 --dry-run
  paictl cluster upgrade -p ./cluster --bundle ./bundle-1.36.4
  paictl cluster upgrade -p ./cluster --bundle ./bundle-1.37.0 --at-once 10% --job-policy wait --max-wait 12h --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return upgradeRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddPeers(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Flags.AddYes(cmd, "don't ask")
	fl, up := cmd.Flags(), &opts.Upgrade
	fl.StringVar(&opts.To, "to", "", "refuse a bundle of another `RELEASE`, such as v1.36.4; required to go back to an earlier patch release")
	fl.StringVar(&opts.AtOnce, "at-once", "1", "how many workers may be out of service at the same time: a number, or a part of them such as 10%")
	fl.StringVar(&opts.Jobs, "job-policy", string(cluster.JobsWait), "how to treat jobs on a machine: "+strings.Join(cluster.JobPolicies(), "|"))
	fl.DurationVar(&up.MaxWait, "max-wait", 0, "with --job-policy wait: leave a machine as it is if its jobs haven't finished by then (default: no limit)")
	fl.DurationVar(&up.DrainTimeout, "drain-timeout", 5*time.Minute, "time limit for the eviction of a machine's pods")
	fl.IntVar(&up.MaxFailures, "max-failures", 1, "how many workers may fail before the others are left as they are")
	fl.BoolVar(&up.Force, "force", false, "delete pods that can't be evicted")
	fl.BoolVar(&opts.WithoutBackup, "without-backup", false, "begin although there is no backup of the last day")
	fl.BoolVar(&up.RemovedAPIs, "removed-apis", false, "begin although someone uses APIs that the new release doesn't have")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	_ = cmd.RegisterFlagCompletionFunc("job-policy", cobra.FixedCompletions(cluster.JobPolicies(), cobra.ShellCompDirectiveNoFileComp))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func (opts *UpgradeOptions) check() error {
	known := false
	for _, p := range cluster.JobPolicies() {
		known = known || p == opts.Jobs
	}
	opts.Upgrade.Jobs = cluster.JobPolicy(opts.Jobs)
	switch {
	case !known:
		return cmdutil.Usagef("--job-policy %s: use one of %s", opts.Jobs, strings.Join(cluster.JobPolicies(), ", "))
	case opts.Upgrade.MaxWait < 0:
		return cmdutil.Usagef("--max-wait %s: give a time above 0", opts.Upgrade.MaxWait)
	case opts.Upgrade.MaxWait > 0 && opts.Upgrade.Jobs != cluster.JobsWait:
		return cmdutil.Usagef("--max-wait requires --job-policy wait")
	case opts.Upgrade.DrainTimeout < time.Second:
		return cmdutil.Usagef("--drain-timeout %s: give at least a second", opts.Upgrade.DrainTimeout)
	case opts.Upgrade.MaxFailures < 1:
		return cmdutil.Usagef("--max-failures %d: give 1 or more", opts.Upgrade.MaxFailures)
	}
	_, err := atOnce(opts.AtOnce, 1)
	return err
}

// atOnce parses a number of machines or a percentage such as 10%. A percentage results in at least one machine.
func atOnce(text string, of int) (int, error) {
	digits, part := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || part && n > 100 {
		return 0, cmdutil.Usagef("--at-once %s: give a number above 0, or a part such as 10%%", text)
	}
	if part {
		n = max(1, of*n/100)
	}
	return n, nil
}

func upgradeRun(ctx context.Context, opts *UpgradeOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: true, Upgrade: true, ReadOnly: opts.DryRun, Format: opts.Output.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	release := s.Config.Kubernetes.Kubernetes.Version
	if to := "v" + strings.TrimPrefix(opts.To, "v"); opts.To != "" && to != release {
		return hint.Errorf("name the folder of a bundle of "+to+" with --bundle; paictl bundle build makes one", "the bundle has Kubernetes %s, not %s", release, to)
	}
	opts.Upgrade.Back = opts.To != "" // a downgrade needs an explicit release
	workers := len(s.Spec.Nodes) - len(s.Spec.ControlPlane())
	if opts.Upgrade.AtOnce, err = atOnce(opts.AtOnce, workers); err != nil {
		return err
	}
	if !opts.WithoutBackup {
		opts.Upgrade.MaxBackupAge = backupAge
	}
	if !opts.DryRun {
		if err := s.ConfirmName(opts.tells(s.Release.Before, release), "yes"); err != nil {
			return err
		}
	}
	s.Options.Retry = func([]string) string { return s.Options.Command } // the upgrade continues where it stopped
	written, begun := false, false
	opts.Upgrade.Begin = func() error {
		// Write the release before the first machine is upgraded. Otherwise another command would reject machines that were upgraded.
		if err := s.Release.Write(); err != nil {
			return err
		}
		written = s.Release.Before != release || s.NewBundle != ""
		err := s.Images.Write()
		begun = err == nil
		return err
	}
	changes, err := cluster.Upgrade(ctx, s.Spec, s.Options, opts.Upgrade)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if written {
		fmt.Fprintf(opts.Factory.IO.Err, "%s now names Kubernetes %s", config.KubernetesFile, release)
		if s.NewBundle != "" {
			fmt.Fprintf(opts.Factory.IO.Err, " and the bundle %s", s.NewBundle)
		}
		fmt.Fprintln(opts.Factory.IO.Err)
	}
	if n := len(s.Images.Changed); n > 0 && (begun || opts.DryRun && changes != nil) {
		names := "now names"
		if opts.DryRun {
			names = "will name"
		}
		fmt.Fprintf(opts.Factory.IO.Err, "%s %s the images of this paictl, in %s: %s\n", config.ServicesFile, names, plural.Of(n, "place"), version.Tag())
	}
	if opts.Output.Is("json") {
		return err
	}
	if opts.DryRun && changes != nil {
		if werr := progress.WritePlan(opts.Factory.IO.Out, changes); werr != nil {
			return werr
		}
	}
	if err == nil && !opts.DryRun {
		fmt.Fprintf(opts.Factory.IO.Err, "Then bring the services to this paictl's charts:\n  paictl config push -p %[1]s\n  paictl service upgrade -p %[1]s\n", hint.Quote(opts.Flags.Dir))
	}
	return err
}

// Describes the upgrade to the user before it begins.
func (opts *UpgradeOptions) tells(from, to string) string {
	jobs := map[cluster.JobPolicy]string{
		cluster.JobsWait: "the upgrade waits until their jobs have finished.", cluster.JobsRequeue: "their tasks begin again on other machines.", cluster.JobsStop: "jobs that have tasks there are stopped.",
	}[opts.Upgrade.Jobs]
	step := "from Kubernetes " + from + " to " + to
	if from == to { // an earlier run has already written it
		step = "to Kubernetes " + to
	}
	return fmt.Sprintf("The cluster is upgraded %s. The control plane restarts, one machine after the other.\n"+
		"At most %d workers are out of service at the same time: their pods are evicted; %s", step, opts.Upgrade.AtOnce, jobs)
}
